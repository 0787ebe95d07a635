-- Follows thesis §12.1.5 (output, refined): the same messages from a single rule, into which the one that derives the
-- event in between was written.

RAISE
  to(recipient="stdout", transport="console") {
    moored [ var X ]
  }
ON
  and {
    event i: sighted [ var X ],
    event k: rope [ var X ],
    event l: knot [ var X ]
  }
  where { i before k, k before l }
END
