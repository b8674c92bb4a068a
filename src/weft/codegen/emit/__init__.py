"""What the emitters of all machines share."""
