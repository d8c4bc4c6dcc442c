package usage

import (
	"fmt"
	"time"

	"github.com/kubeop/kubeop/internal/manager/problem"
)

// The steps by which a list adds up amounts.
const (
	hour  = "hour"
	day   = "day"
	month = "month"
)

// The longest time of a list: by hours, and by days or months. Amounts older than store.KeepUsage are deleted.
const (
	maxHours = 31 * 24 * time.Hour
	maxDays  = 400 * 24 * time.Hour
)

// span is the time from from to until, divided into steps.
type span struct {
	from, until time.Time
	step        string
}

// spanOf checks the parameters from, until and step of a request. By default the span is today, until the end of the current hour.
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

// stepOf returns the step to which an hour belongs. Steps do not extend beyond the span.
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

// steps returns all steps of the span.
func (s span) steps() (all []span) {
	for at := s.from; at.Before(s.until); at = all[len(all)-1].until {
		all = append(all, s.stepOf(at))
	}
	return all
}
