package usage

import (
	"fmt"
	"time"

	"github.com/kubeop/kubeop/internal/manager/problem"
)

// The steps of a list.
const (
	hour  = "hour"
	day   = "day"
	month = "month"
)

// How long a list may be. What is older than store.KeepUsage is not kept.
const (
	maxHours = 31 * 24 * time.Hour
	maxDays  = 400 * 24 * time.Hour
)

// span is the time of a list, in steps.
type span struct {
	from, until time.Time
	step        string
}

// spanOf checks the time of a list. Without one it is that of today.
func spanOf(from, until time.Time, step string, now time.Time) (span, error) {
	if until.IsZero() {
		until = now.Truncate(time.Hour).Add(time.Hour)
	}
	if from.IsZero() {
		from = until.Add(-time.Hour).Truncate(24 * time.Hour)
	}
	s := span{from.UTC(), until.UTC(), step}
	longest := maxDays
	if step == hour {
		longest = maxHours
	}
	switch {
	case !whole(from):
		return s, wrong("query.from", "has to be the beginning of an hour")
	case !whole(until):
		return s, wrong("query.until", "has to be the beginning of an hour")
	case !from.Before(until):
		return s, wrong("query.until", "has to be after from")
	case until.Sub(from) > longest:
		return s, wrong("query.until", fmt.Sprintf("may be at most %d days after from, with step %s", int(longest.Hours())/24, step))
	}
	return s, nil
}

func whole(at time.Time) bool { return at.Truncate(time.Hour).Equal(at) }

func wrong(location, message string) error {
	return problem.New(problem.Invalid, "The time is invalid.", problem.Fault{Location: location, Message: message})
}

// stepOf returns the part of the span that an hour is in: a step, cut at the ends of the span.
func (s span) stepOf(at time.Time) span {
	from := at.Truncate(time.Hour)
	until := from.Add(time.Hour)
	switch s.step {
	case day:
		from = from.Truncate(24 * time.Hour)
		until = from.AddDate(0, 0, 1)
	case month:
		from = time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
		until = from.AddDate(0, 1, 0)
	}
	if from.Before(s.from) {
		from = s.from
	}
	if until.After(s.until) {
		until = s.until
	}
	return span{from, until, s.step}
}

// steps returns all parts of the span.
func (s span) steps() (all []span) {
	for at := s.from; at.Before(s.until); at = all[len(all)-1].until {
		all = append(all, s.stepOf(at))
	}
	return all
}
