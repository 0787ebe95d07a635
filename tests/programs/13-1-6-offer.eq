-- Follows thesis §13.1.6, fig. 13.1 (matching and construction): a seat on a night bus, sold from an offer that the
-- traveller took up. (The figure uses one variable for two things; here they are two.)

DETECT
  ticket {
    nr { var I },
    traveller { var C },
    line { var P },
    seats { var Q },
    reduction { var D }
  }
ON
  and {
    event o: seat-offer {
      code { var K },
      line { var P },
      reduction { var D },
      most-seats { var MQ }
    },
    event a: take-seat {
      code { var K },
      nr { var I },
      traveller { var C },
      seats { var Q }
    }
  }
  where { o before a, {o,a} within 3 days, var Q <= var MQ }
END
