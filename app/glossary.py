"""The words of the field in plain language: they feed the help page and the tooltips.
Longer explanations, with the formulas, are in templates/help.html."""
