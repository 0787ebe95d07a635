-- Follows the event lifetimes paper, table 1 (relations with parameters): how a telephone call may lie to the shift of
-- the desk that takes it, measured.

TIME UNIT 1 min;

EVENT call(desk: string) LASTS AT MOST 2h;
EVENT shift(desk: string) LASTS AT MOST 10h;

-- exactly, between, at most and at least so long before
b1(d) <- i: call(d), j: shift(d), i before[15] j;
b2(d) <- i: call(d), j: shift(d), i before[0, 4 hours] j;
b3(d) <- i: call(d), j: shift(d), i before[*, 20m] j;
b4(d) <- i: call(d), j: shift(d), i before[5m, *] j, {i, j} within 1d;
b5(d) <- i: shift(d), j: call(d), i after[10m] j;
b6(d) <- i: shift(d), j: call(d), i after[1m30s, 1h] j;

-- nearly meeting, nearly equal
m1(d) <- i: call(d), j: shift(d), i meets[30 sec] j;
m2(d) <- i: shift(d), j: call(d), i met-by[500 ms] j;
e1(d) <- i: call(d), j: shift(d), i equals[1] j;
e2(d) <- i: call(d), j: shift(d), i equals[1, 2] j;

-- within the shift: both margins, each margin, each margin between limits
d1(d) <- i: call(d), j: shift(d), i during[30] j;
d2(d) <- i: call(d), j: shift(d), i during[30, 1h] j;
d3(d) <- i: call(d), j: shift(d), i during[10, 1h, 0, *] j;
c1(d) <- i: shift(d), j: call(d), i contains[30] j;
c2(d) <- i: shift(d), j: call(d), i contains[30, 45] j;
c3(d) <- i: shift(d), j: call(d), i contains[*, 2h, 5m, *] j;

o1(d) <- i: call(d), j: shift(d), i overlaps[5] j;
o2(d) <- i: call(d), j: shift(d), i overlaps[5, 3h] j;
o3(d) <- i: call(d), j: shift(d), i overlaps[0, 1h, *, 9h] j;
o4(d) <- i: shift(d), j: call(d), i overlapped-by[5] j;
o5(d) <- i: shift(d), j: call(d), i overlapped-by[5, 3h] j;
o6(d) <- i: shift(d), j: call(d), i overlapped-by[*, 30, 1h, *] j;

-- beginning or ending together: exactly or nearly
s1(d) <- i: call(d), j: shift(d), i starts[8h] j;
s2(d) <- i: call(d), j: shift(d), i starts[6h, 9h] j;
s3(d) <- i: call(d), j: shift(d), i starts[2m, 6h, *] j;
s4(d) <- i: shift(d), j: call(d), i started-by[8h] j;
s5(d) <- i: shift(d), j: call(d), i started-by[6h, *] j;
s6(d) <- i: shift(d), j: call(d), i started-by[2m, 6h, 9h] j;
f1(d) <- i: call(d), j: shift(d), i finishes[8h] j;
f2(d) <- i: call(d), j: shift(d), i finishes[*, 9h] j;
f3(d) <- i: call(d), j: shift(d), i finishes[2m, 6h, 9h] j;
f4(d) <- i: shift(d), j: call(d), i finished-by[8h] j;
f5(d) <- i: shift(d), j: call(d), i finished-by[6h, 9h] j;
f6(d) <- i: shift(d), j: call(d), i finished-by[2m, *, 9h] j;

-- in a block rule
DETECT
  answered-late { desk { var D } }
ON
  and {
    event i: call {{ desk { var D } }},
    event j: shift {{ desk { var D } }}
  } where { i during[7 hours, 10 hours, 0 min, *] j }
END
