"""How the models of this book are made: text, target, the target's own text, drafts, their acceptance, the card."""
