-- Follows thesis §6.2 (simple event queries): finds blood samples for which a laboratory used a large amount of
-- reagent.

DETECT
  costly { sample { var I } }
ON
  event r: assay {{
    sample { var I },
    ward { var W },
    method { var M },
    millilitres { var P },
    runs { var N }
  }}
  where { var P * var N >= 250 }
END
