"""The GitHub action for other projects, and the workflows that use it."""
