"""What other projects take on: the action's own part, and the workflows that use it."""
