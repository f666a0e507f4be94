"""How documents are kept: attributes in memory, the inverted index of text, and whole documents."""
