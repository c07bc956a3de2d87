"""What goes on inside models: hidden states that a study has kept, what can be read out of them, and how alike they are."""
