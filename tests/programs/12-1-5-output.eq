-- Follows thesis §12.1.5 (output of programs): only the message matters to the outside, not the two events that are
-- derived on the way.

RAISE
  to(recipient="stdout", transport="console") {
    moored [ var X ]
  }
ON
  and {
    event i: sighted [ var X ],
    event j: tied [ var X ]
  }
  where { i before j }
END

DETECT tied[ var X ]
ON
  and {
    event k: rope [ var X ],
    event l: knot [ var X ]
  }
  where {k before l}
END

DETECT slack[ var X ]
ON
  event k: rope [ var X ]
END
