"""This package turns a syntax tree into checked, stratified, normalized rules: `resolve`, `stratify`, `normalize`."""
