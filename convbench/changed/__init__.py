"""What differs between two builds as they are installed, and which cells that can have changed."""
