"""Everything that imports asv or depends on its internals."""
