-- Follows docs/grammar.md (no reserved words): a lost property office names its events, identifiers, variables and
-- labels by words that are keywords elsewhere.

returned(before) <- o: while(before), p: event(before, _), before != "umbrella", o before p, {o, p} within 1w;
and(not) <- where: or(not), on: `while`(not), where != on, {where, on} within 1 day;
collect(all) <- at: within(all), all > 0;

DETECT
  DETECT { end { var END }, count { var count }, group { var by } }
ON
  event ON: where {{ group { var END }, all { var count }, by { var by }, var {{ }} }}
  where { var END != "", var count > 0 }
END
