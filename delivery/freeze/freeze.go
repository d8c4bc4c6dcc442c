// Package freeze says whether something new of a tenant may be delivered: whether administrators froze or stopped the tenant, or a freeze window
// is open, and until when.
package freeze

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// administrator says in messages who may end a freeze that administrators set. It is the text that package command has; this package does not import it.
const administrator = "an administrator of the cluster"

// MaxWindows is how many windows of a tenant are evaluated: as many as the Tenant's schema allows.
const MaxWindows = 16

// crontab reads five fields, and no other form.
var crontab = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// Hold is a freeze that is in force.
type Hold struct {
	// Name and Message are those of the window; of several, of the one that ends last.
	Name, Message string
	// Until is the end, in the time zone of the window. If another window follows without a pause, it is the end of that one. It is zero for
	// a Tenant that administrators froze.
	Until time.Time
	// Field is the field by which administrators froze or stopped the Tenant, and File where they wrote it; both are "" for a window.
	Field, File string
}

// ByAdministrators reports whether administrators froze the Tenant: then the end is not known, and nobody else can end it.
func (h *Hold) ByAdministrators() bool { return h != nil && h.Field != "" }

// String says which freeze it is, and until when, such as "until 2026-11-30 08:00 CET (Europe/Berlin) by freeze weekend".
func (h *Hold) String() string {
	if h.ByAdministrators() {
		return fmt.Sprintf("until %s removes %s from %s in Git", administrator, h.Field, h.File)
	}
	clock := "15:04"
	if h.Until.Second() != 0 {
		clock = time.TimeOnly
	}
	text := "until " + h.Until.Format("2006-01-02 "+clock+" MST")
	if zone := h.Until.Location().String(); zone != "UTC" {
		text += " (" + zone + ")"
	}
	text += " by freeze " + h.Name
	if h.Message != "" {
		text += fmt.Sprintf(" (%q)", h.Message)
	}
	return text
}

// Of returns what keeps back what is new of a tenant at a time: that administrators froze it, or else an open window; nil if nothing does. It
// fails for windows that Check refuses.
func Of(tenant *v1alpha1.Tenant, now time.Time) (*Hold, error) {
	if hold := ByAdministrators(tenant); hold != nil {
		return hold, nil
	}
	return InForce(tenant.Spec.Freeze, now)
}

// ByAdministrators returns the hold of a Tenant that administrators froze; nil for any other.
func ByAdministrators(tenant *v1alpha1.Tenant) *Hold {
	if !tenant.Spec.Frozen {
		return nil
	}
	return holdBy(tenant, "spec.frozen")
}

// Stopped returns the hold of a Tenant that administrators stopped; nil for any other.
func Stopped(tenant *v1alpha1.Tenant) *Hold {
	if !tenant.Spec.Stopped {
		return nil
	}
	return holdBy(tenant, "spec.stopped")
}

// holdBy returns the hold by a field of a Tenant.
func holdBy(tenant *v1alpha1.Tenant, field string) *Hold {
	file := "tenant.yaml of the platform repository"
	if folder := tenant.Annotations[v1alpha1.FolderAnnotation]; folder != "" {
		file = folder + "/" + file
	}
	return &Hold{Field: field, File: file}
}

// InForce returns the freeze window that is in force at a time; nil for none. It fails for windows that Check refuses; the error says who corrects
// them.
func InForce(windows []v1alpha1.FreezeWindow, now time.Time) (*Hold, error) {
	parsed := make([]*window, 0, len(windows))
	for i := range windows[:min(len(windows), MaxWindows)] {
		w, err := parse(&windows[i])
		if err != nil {
			return nil, fmt.Errorf("the freeze window %s of the tenant cannot be evaluated: %w: %s may correct spec.freeze in tenant.yaml", windows[i].Name, err, administrator)
		}
		parsed = append(parsed, w)
	}
	hold := latest(parsed, now)
	if hold == nil {
		return nil, nil
	}
	for range MaxWindows { // A limit for windows that never end.
		next := latest(parsed, hold.Until)
		if next == nil {
			break
		}
		hold.Until = next.Until
	}
	return hold, nil
}

// latest returns the window that is open at a time and ends last; nil for none.
func latest(windows []*window, at time.Time) *Hold {
	var hold *Hold
	for _, w := range windows {
		if end, open := w.end(at); open && (hold == nil || end.After(hold.Until)) {
			hold = &Hold{Name: w.spec.Name, Message: w.spec.Message, Until: end}
		}
	}
	return hold
}

// window is a parsed window.
type window struct {
	spec  *v1alpha1.FreezeWindow
	start cron.Schedule
	zone  *time.Location
}

// Fault is what is wrong with a field of a window.
type Fault struct {
	// Field is the name of the field in the window.
	Field string
	Why   string
}

// Error implements error.
func (f *Fault) Error() string { return f.Field + " " + f.Why }

func parse(spec *v1alpha1.FreezeWindow) (*window, error) {
	if strings.Contains(spec.Start, "TZ=") { // The parser would take the zone from here.
		return nil, &Fault{"start", "must not name a time zone: write it as timeZone"}
	}
	start, err := crontab.Parse(spec.Start)
	if err != nil {
		return nil, &Fault{"start", fmt.Sprintf(`%.100q is not five fields of crontab, such as "0 18 * * FRI": %.200s`, spec.Start, err)}
	}
	zone := zoneOf(cmp.Or(spec.TimeZone, "UTC"))
	if zone == nil {
		return nil, &Fault{"timeZone", fmt.Sprintf("%.64q is not the name of a time zone, such as Europe/Berlin", spec.TimeZone)}
	}
	if spec.Duration.Duration <= 0 {
		return nil, &Fault{"duration", "must be longer than 0"}
	}
	return &window{spec, start, zone}, nil
}

// zones are the time zones that were loaded. There are about 600 names, so the map stays small.
var zones sync.Map

// zoneOf loads a time zone; nil if there is none of the name. "Local" is none, because it depends on the machine.
func zoneOf(name string) *time.Location {
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location)
	}
	zone, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "Local") {
		return nil
	}
	zones.Store(name, zone)
	return zone
}

// shift is more than clocks change at once.
const shift = 3 * time.Hour

// end returns the end of the window that is open at a time. The starts are computed on the clock on the wall, which is the same every day,
// and then converted: the cron library leaves out starts in the hour that is skipped in spring, and repeats those in the hour that comes
// twice in autumn.
func (w *window) end(at time.Time) (end time.Time, open bool) {
	from, to := wall(at.Add(-w.spec.Duration.Duration).In(w.zone)).Add(-shift), wall(at.In(w.zone)).Add(shift)
	for s := w.start.Next(from); !s.IsZero() && !s.After(to); s = w.start.Next(s) {
		start := time.Date(s.Year(), s.Month(), s.Day(), s.Hour(), s.Minute(), 0, 0, w.zone)
		if end = start.Add(w.spec.Duration.Duration); !start.After(at) && end.After(at) {
			return end, true
		}
	}
	return time.Time{}, false
}

// wall returns the time that the clock on the wall shows, as a time in UTC.
func wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// maxStarts is how many starts of a window Check compares.
const maxStarts = 1000

// Check returns what is wrong with a window; nil for nothing.
func Check(spec *v1alpha1.FreezeWindow) error {
	w, err := parse(spec)
	if err != nil {
		return err
	}
	last := w.start.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if last.IsZero() {
		return &Fault{"start", fmt.Sprintf("%q never occurs", spec.Start)}
	}
	for range maxStarts {
		next := w.start.Next(last)
		if next.IsZero() || next.Sub(last) > spec.Duration.Duration {
			return nil
		}
		last = next
	}
	return &Fault{"duration", fmt.Sprintf("is %s, and the window starts again before that is over, so it never ends: write fewer starts or a shorter duration", spec.Duration.Duration)}
}
