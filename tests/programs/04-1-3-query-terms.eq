-- Follows thesis §4.1.3 (query terms, fig. 4.2): picks harbours, ships and crossings out of a ferry timetable
-- that is announced as one message.

-- (a) partial in breadth; a comma may stand behind the last child
DETECT
  reachable { harbour { var H } }
ON
  event t: timetable {{
    crossing {{ arrives { var H }, leaves { "Kiel" } }},
  }}
END

-- (b) partial in depth
DETECT
  ship { var N }
ON
  event t: timetable {{ desc vessel { var N } }}
END

-- (c) a restricted variable and a part that must be missing; no comma between the children
DETECT
  elsewhere { var C, vessel { var N } }
ON
  event t: timetable {{
    var C -> crossing {{
      vessel {{ var N }}
      without arrives {{ "Oslo" }}
    }}
  }}
END

-- optional parts, which the head must call optional too
DETECT
  remark {
    vessel { var N },
    optional text { var T } with default text { "nothing" }
  }
ON
  event t: timetable {{
    crossing {{ vessel { var N }, optional note { var T } }}
  }}
END

-- a label variable, an attribute, a regular expression, and ordered children both complete and partial
DETECT
  cargo { @port { var P }, code { var C }, kind { var K }, amount { var A } }
ON
  event m: manifest [[
    header {{ @port { var P }, code { var C -> /K[a-z]+-[0-9]{2}/ }, mark { /[A-Z]\/[0-9]+/ } }},
    var K [ var A ]
  ]]
  where { var A > 0 }
END

-- a label variable at the root: any message that carries an imo number
DETECT
  sighted { kind { var L }, imo { var I } }
ON
  event e: var L {{ imo { var I }, position {{ }} }}
END
