-- Follows thesis §9.4.2, fig. 9.4 (a program and its model): a lowered gate counts as closed, and a train behind a
-- closed gate has a free way. (The figure is lost; the model that the section prints has these two rules.)

DETECT
  closed [ var X ]
ON
  event i: lowered [ var X ]
END

DETECT
  free [ var X ]
ON
  and {
    event i: closed [ var X ],
    event j: train [ var X ]
  } where { i before j }
END
