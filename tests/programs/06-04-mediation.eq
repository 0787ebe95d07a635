-- Follows thesis §6.4, fig. 6.3 (schema mediation): three libraries announce loans each in its own shape, and the
-- rules bring them into one.

-- other names
DETECT
  loan [
    number { var I },
    reader { var C },
    item [ title { var S }, fee { var L }, days { var V } ]
  ]
ON
  event b: prestito [
    numero { var I },
    lettore { var C },
    oggetto [ titolo { var S }, tariffa { var L }, giorni { var V } ]
  ]
END

-- another structure
DETECT
  loan [
    number { var I },
    reader { var C },
    item [ title { "Atlas" }, fee { var L }, days { var V } ]
  ]
ON
  event b: atlas-loan [
    key { var I },
    by { var C },
    daily { var L },
    length { var V }
  ]
END

-- another meaning: the fee is for all days together
DETECT
  loan [
    number { var I },
    reader { var C },
    item [ title { var S }, fee { div(var M, var V) }, days { var V } ]
  ]
ON
  event b: flat-loan [
    number { var I },
    reader { var C },
    title { var S },
    days { var V },
    whole-fee { var M }
  ]
END

-- the remaining functions of construct terms
DETECT
  receipt {
    text { concat(var C, " / ", var S) },
    until { add(var V, 2) },
    free-days { subtract(var V, 14) },
    last-row { mod(var I, 7) },
    price { mult(var L, var V) },
    with-tax { add(mult(var L, var V), div(mult(var L, var V), 5)) }
  }
ON
  event l: loan [[
    number { var I },
    reader { var C },
    item [ title { var S }, fee { var L }, days { var V } ]
  ]]
END
