"""Programs that run in the measured environment, with the standard library and asv_runner alone. Nothing imports them."""
