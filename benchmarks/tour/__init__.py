"""A guided tour: the stories of the texts that the project grew out of, repeated and measured on this machine."""
