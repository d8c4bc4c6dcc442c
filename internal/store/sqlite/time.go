package sqlite

import "time"

// micros returns a time as it is stored.
func micros(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}

// fromMicros returns a time as it was before it was stored.
func fromMicros(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.UnixMicro(at).UTC()
}
