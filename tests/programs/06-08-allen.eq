-- Follows thesis §6.8 (qualitative relations): how a lecture and a rehearsal in the same hall may lie to each
-- other, one rule for each of Allen's relations.

EVENT lecture(hall: string) LASTS AT MOST 4 hours;
EVENT rehearsal(hall: string) LASTS AT MOST 8 hours;

-- the three that matter most, and their inverses
DETECT r1 { var H } ON and { event i: lecture {{ hall { var H } }}, event j: rehearsal {{ hall { var H } }} }
  where { i before j, {i,j} within 1 day } END
DETECT r2 { var H } ON and { event i: lecture {{ hall { var H } }}, event j: rehearsal {{ hall { var H } }} }
  where { i after j, {i,j} within 1 day } END
DETECT r3 { var H } ON and { event i: lecture {{ hall { var H } }}, event j: rehearsal {{ hall { var H } }} }
  where { i contains j } END
DETECT r4 { var H } ON and { event i: lecture {{ hall { var H } }}, event j: rehearsal {{ hall { var H } }} }
  where { i during j } END
DETECT r5 { var H } ON and { event i: lecture {{ hall { var H } }}, event j: rehearsal {{ hall { var H } }} }
  where { i overlaps j } END
DETECT r6 { var H } ON and { event i: lecture {{ hall { var H } }}, event j: rehearsal {{ hall { var H } }} }
  where { i overlapped-by j } END

-- those in which two ends are the same instant
DETECT r7 { var H } ON and { event i: lecture {{ hall { var H } }}, event j: rehearsal {{ hall { var H } }} }
  where { i meets j } END
DETECT r8 { var H } ON and { event i: lecture {{ hall { var H } }}, event j: rehearsal {{ hall { var H } }} }
  where { i met-by j } END
DETECT r9 { var H } ON and { event i: lecture {{ hall { var H } }}, event j: rehearsal {{ hall { var H } }} }
  where { i starts j } END
DETECT r10 { var H } ON and { event i: lecture {{ hall { var H } }}, event j: rehearsal {{ hall { var H } }} }
  where { i started-by j } END
DETECT r11 { var H } ON and { event i: lecture {{ hall { var H } }}, event j: rehearsal {{ hall { var H } }} }
  where { i finishes j } END
DETECT r12 { var H } ON and { event i: lecture {{ hall { var H } }}, event j: rehearsal {{ hall { var H } }} }
  where { i finished-by j } END
DETECT r13 { var H } ON and { event i: lecture {{ hall { var H } }}, event j: rehearsal {{ hall { var H } }} }
  where { i equals j } END
