"""What several commands share: their options, where their output goes, and how they fail."""
