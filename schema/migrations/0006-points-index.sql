-- Earlier runs of the same point, by its JSON.
CREATE INDEX points_point ON points (point);
