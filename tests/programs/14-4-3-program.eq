-- Follows thesis §14.4.3, fig. 14.3 (a program and its plan): two ways to a passed check of a bicycle, and a third rule
-- that is built on both.

DETECT passed[light[var X]]
ON
  and {
    event i: front[var X],
    event j: rear[var X],
    event k: dynamo[var X]
  }
END

DETECT passed[brake[var X]]
ON
  and {
    event i: dynamo[var X],
    event j: pad[var X]
  }
  where { i before j }
END

DETECT ready[var X]
ON
  and {
    event i: collected[var X],
    event j: passed[var X]
  }
  where { {i,j} within 6h }
END
