-- Follows thesis §9.3.2, fig. 9.2 and 9.3 (entailment): the timers in their short spelling, without prefix and
-- without the word `event`, around a train's stop at a platform.

EVENT stop(train: string) LASTS AT MOST 1h;

DETECT s1 { var T } ON and { event j: stop { train { var T } }, event i: extend[j, 5 min] } END
DETECT s2 { var T } ON and { event j: stop { train { var T } }, event i: shorten[j, 5 min] } END
DETECT s3 { var T } ON and { event j: stop { train { var T } }, event i: extend-begin[j, 5 min] } END
DETECT s4 { var T } ON and { event j: stop { train { var T } }, event i: shorten-begin[j, 5 min] } END
DETECT s5 { var T } ON and { event j: stop { train { var T } }, event i: shift-forward[j, 5 min] } END
DETECT s6 { var T } ON and { event j: stop { train { var T } }, event i: shift-backward[j, 5 min] } END
DETECT s7 { var T } ON and { event j: stop { train { var T } }, event i: from-end[j, 5 min] } END
DETECT s8 { var T } ON and { event j: stop { train { var T } }, event i: from-end-backward[j, 5 min] } END
DETECT s9 { var T } ON and { event j: stop { train { var T } }, event i: from-start[j, 5 min] } END
DETECT s10 { var T } ON and { event j: stop { train { var T } }, event i: from-start-backward[j, 5 min] } END
DETECT s11 { var T } ON and { event j: stop { train { var T } }, event i: extend-backward[j, 5 min] } END

-- the same in arrow rules
a1(t) <- j: stop(t), i: extend(j, 5m);
a2(t) <- j: stop(t), i: shorten(j, 5m);
a3(t) <- j: stop(t), i: extend-begin(j, 5m);
a4(t) <- j: stop(t), i: shorten-begin(j, 5m);
a5(t) <- j: stop(t), i: shift-forward(j, 5m);
a6(t) <- j: stop(t), i: shift-backward(j, 5m);
a7(t) <- j: stop(t), i: from-end(j, 5m);
a8(t) <- j: stop(t), i: from-end-backward(j, 5m);
a9(t) <- j: stop(t), i: from-start(j, 5m);
a10(t) <- j: stop(t), i: from-start-backward(j, 5m);
a11(t) <- j: stop(t), i: extend-backward(j, 5m);
a12(t) <- j: stop(t), i: timer:extend(j, 5m), datetime:from-end(i, 1w2d3h4m5s6ms7us);
a13(t) <- j: stop(t), i: timer:extend[event j, 90s], k: shift-forward[i, 0.5 sec];

-- a condition of each other kind
a14(t) <- i: stop(t), j: stop(t), i before j, {i, j} within 3h, {i, j} apart-by 20m;
