"""The paper's experiment: fine-tune a model's last layers on labelled texts. README.md is the walk-through."""
