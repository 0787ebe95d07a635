EVENT reading(sensor: string, kind: string, value: int);
EVENT ack(sensor: string);

hot(s) <- r: reading(s, "temperature", v), v > 90, w: extend(r, 1 min), while w: not ack(s);
wet(sensor) <- m: reading(sensor, "humidity", level), level > 80, w: extend(m, 1 min), while w: not ack(sensor);
