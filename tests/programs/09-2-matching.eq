-- Follows thesis §9.2.2 and §9.2.3 (matching and construction): every part of a crate at any depth next to a seal,
-- once as events of their own and once gathered in one.

DETECT
  part [ var Y, var X ]
ON
  event c: crate {{ desc var X, seal [ "lead", var Y ] }}
END

DETECT
  parts { var Y, all var X }
ON
  event c: crate {{ desc var X, seal [ "lead", var Y ] }}
END
