"""Pictures: filtered photographs, training curves, the stages of preprocess."""
