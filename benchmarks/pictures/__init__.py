"""Pictures: filtered photographs, training curves, the stages of preprocess, the rungs of train_step."""
