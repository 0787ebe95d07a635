-- Follows thesis §13.4.4 (negated and optional variables): a guest at a table orders a dish that the menu does not
-- leave out, and dishes are listed with or without a remark.

-- X is bound by the second event and tested against the first
DETECT
  allowed { var X }
ON
  and {
    event i: sold-out {{ without var X }},
    event j: wished {{ var X }}
  }
END

-- the same with more around the variable
DETECT
  allowed-for { guest { var G }, dish { var X } }
ON
  and {
    event i: allergies {{ guest { var G }, without avoids { var X } }},
    event j: wished-by {{ guest { var G }, dish { var X } }}
  }
  where { i before j, {i,j} within 3 hours }
END

-- X may stay unbound
DETECT
  card { optional remark { var X } }
ON
  event i: menu {{ optional remark { var X } }}
END

DETECT
  line { dish { var N }, optional remark { var X } with default remark { "-" }, optional price { var P } }
ON
  event i: menu {{
    dish {{ name { var N }, optional remark { var X }, optional price { var P } }}
  }}
END
