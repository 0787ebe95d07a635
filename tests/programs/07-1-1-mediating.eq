-- Follows thesis §7.1.1 (mediating orders): requests to a lending library that come in a foreign form, as a pick
-- from the monthly list, or several in one basket.

-- other names
DETECT
  request {
    nr { var I },
    reader { var C },
    title { var P },
    copies { var Q }
  }
ON
  event b: solicitud {
    numero { var I },
    lector { var C },
    titulo { var P },
    ejemplares { var Q }
  }
END

-- a request that is itself complex
DETECT
  request {
    nr { var I },
    reader { var C },
    title { var P },
    copies { var Q },
    rebate { var D }
  }
ON
  and {
    event o: monthly-list {
      key { var K },
      title { var P },
      rebate { var D },
      most-copies { var MQ }
    },
    event a: pick {
      key { var K },
      nr { var I },
      reader { var C },
      copies { var Q }
    }
  } where { o before a, {o,a} within 4 weeks, var Q <= var MQ }
END

-- several in one message, so the pattern is partial
DETECT
  request {
    nr { var I },
    reader { var C },
    title { var P },
    copies { var Q }
  }
ON
  event m: basket {{
    reader { var C },
    line {
      nr { var I },
      title { var P },
      copies { var Q }
    }
  }}
END
