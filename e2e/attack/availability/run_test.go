//go:build e2e

package availability

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubeop/kubeop/e2e/stage"
)

// What must hold while tenants attack.
const (
	mostLatency = 2.0 // Seconds from the push of another tenant to its Deployment, at p99, or
	mostSlower  = 10  // times the latency without attacks, if that is more (slow machines).
	mostGrowth  = 1.2 // Growth of the operator's own memory, at its median and in the end.
	mostPeak    = 1.8 // Growth of its maximum.
	mostGone    = 30 * time.Second
	mostMove    = 30 * time.Second // For the update of the attackers' other app.
	mostBurning = 0.3              // Processors that boxes use once all attacks are reported.
	mostCalm    = 60 * time.Second // Until they use less than that, after all attacks are reported.
)

// atLeast is how long a window is, so that several pushes fall into it.
const atLeast = 6 * time.Second

// batch is the attacks that one tenant pushes in one commit.
type batch struct {
	box     string
	attacks []attack
}

// outcome is the result of an attack by one tenant.
type outcome struct {
	attack
	box    string
	tenant string
	by     int
	// reportedAfter is how long it took until the attack was reported.
	reportedAfter time.Duration
	mu            sync.Mutex
	err           error
	w             *window
}

// window is a period in which one or more tenants attack.
type window struct {
	name     string
	from, to time.Time
	latency  latency
	spent    spent
	// moved, calm and gone are the longest times of all attackers.
	moved, calm, gone time.Duration
	broken            []string
	// restarts is the operator's restart count at the beginning.
	restarts int
}

// TestAvailabilityHoldsUnderAttack measures without attacks, with one attacker, with three attackers, and again without attacks.
func TestAvailabilityHoldsUnderAttack(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	limit, err := operator.limit()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(limit)
	r := &report{limit: limit}
	var working sync.WaitGroup
	working.Go(func() { beta.work(ctx) })
	working.Go(func() { operator.watch(ctx) })
	defer working.Wait()
	defer cancel()
	r.before = undisturbed(t, "undisturbed, before")
	batches := gather()
	t.Run("one attacker", func(t *testing.T) {
		for _, b := range batches {
			_, all := run(t, r.before, attackers[:1], b)
			r.add(all)
		}
	})
	t.Run("three attackers", func(t *testing.T) {
		for len(batches) > 0 {
			n := len(attackers)
			if full {
				n = 1 // All attackers push the same batch.
			}
			n = min(n, len(batches))
			_, all := run(t, r.before, attackers, batches[:n]...)
			r.add(all)
			batches = batches[n:]
		}
	})
	r.after = undisturbed(t, "undisturbed, after")
	r.judge(t)
}

// undisturbed measures without attacks.
func undisturbed(t *testing.T, name string) *window {
	t.Helper()
	w := &window{name: name}
	w.begin(t)
	time.Sleep(15 * time.Second)
	w.end(t)
	return w
}

// gather groups the attacks of each box into batches. In a full run each attack is a batch of its own.
func gather() []batch {
	most := 5
	if full {
		most = 1
	}
	only := os.Getenv("ATTACK_ROWS")
	var all []batch
	for _, x := range boxed {
		var now []attack
		for _, a := range x.attacks {
			if only != "" && !strings.Contains(","+only+",", ","+a.key+",") && only != x.name {
				continue
			}
			if a.alone && len(now) > 0 {
				all, now = append(all, batch{x.name, now}), nil
			}
			if now = append(now, a); a.alone || len(now) == most {
				all, now = append(all, batch{x.name, now}), nil
			}
		}
		if len(now) > 0 {
			all = append(all, batch{x.name, now})
		}
	}
	return all
}

// run lets each tenant push a batch at the same time. It waits until all attacks are reported, removes them, and waits until they
// are gone.
func run(t *testing.T, control *window, by []*tenant, batches ...batch) (*window, []*outcome) {
	t.Helper()
	if len(batches) > 1 {
		by = by[:len(batches)]
	}
	w := &window{}
	var all []*outcome
	for n, tenant := range by {
		b := batches[n%len(batches)]
		for _, a := range b.attacks {
			all = append(all, &outcome{attack: a, box: b.box, tenant: tenant.name, by: len(by), w: w})
		}
		w.name = strings.TrimPrefix(w.name+"; "+b.name(), "; ")
		if err := tenant.prepare(t.Context(), b); err != nil {
			t.Fatalf("%s: %v", tenant.name, err)
		}
	}
	w.begin(t)
	var parts sync.WaitGroup
	var mu sync.Mutex
	for _, tenant := range by {
		parts.Go(func() {
			one, err := tenant.attack(t.Context(), all)
			mu.Lock()
			defer mu.Unlock()
			w.moved, w.calm, w.gone = max(w.moved, one.moved), max(w.calm, one.calm), max(w.gone, one.gone)
			if err != nil {
				w.broken = append(w.broken, tenant.name+": "+err.Error())
			}
		})
	}
	parts.Wait()
	w.end(t)
	w.judge(control)
	w.log(t, all, control)
	return w, all
}

func (b batch) name() string {
	var names []string
	for _, a := range b.attacks {
		names = append(names, a.key)
	}
	return b.box + ": " + strings.Join(names, ", ")
}

// prepare commits the batch. It is pushed when all tenants are ready.
func (t *tenant) prepare(ctx context.Context, b batch) error {
	with := files{}
	for _, a := range b.attacks {
		if a.ready != nil && !t.prepared[a.key] {
			if err := a.ready(ctx, &site{t, a.key}); err != nil {
				return err
			}
			t.prepared[a.key] = true
		}
		if a.push != nil {
			maps.Copy(with, a.push(&site{t, a.key}))
		}
	}
	return t.commit(ctx, "Attack", with)
}

// took is how long the phases of one tenant's attack took.
type took struct{ moved, calm, gone time.Duration }

// attack pushes the prepared commit, waits until all attacks are reported, updates the app steady, and removes the attacks.
func (t *tenant) attack(ctx context.Context, all []*outcome) (x took, err error) {
	began := time.Now()
	if err := t.push(ctx); err != nil {
		return x, err
	}
	doing, stop := context.WithCancel(ctx)
	defer stop()
	var acts, reports sync.WaitGroup
	for _, o := range all {
		if o.tenant != t.name {
			continue
		}
		if o.does != nil {
			acts.Go(func() { o.act(doing, t) })
		}
		reports.Go(func() { o.wait(ctx, t, began) })
	}
	moving := time.Now()
	err = t.move(ctx)
	if err == nil {
		err = stage.Until(ctx, 3*mostMove, "the attacker's own other app moves", t.moved)
	}
	x.moved = time.Since(moving)
	reports.Wait()
	time.Sleep(time.Until(began.Add(atLeast)))
	stop()
	acts.Wait()
	calming := time.Now()
	err = errors.Join(err, stage.Until(ctx, 2*mostCalm, "the boxes rest", func(context.Context) error {
		if is := operator.burning(time.Second); is > mostBurning {
			return fmt.Errorf("they use %.1f processors", is)
		}
		return nil
	}))
	x.calm = time.Since(calming)
	gone, err2 := t.remove(ctx)
	x.gone = gone
	return x, errors.Join(err, err2)
}

// act runs the attack's actions besides the push until the context ends.
func (o *outcome) act(ctx context.Context, t *tenant) {
	if err := o.does(ctx, &site{t, o.key}); err != nil && ctx.Err() == nil {
		o.failed(err)
	}
}

// wait waits until the attack is reported.
func (o *outcome) wait(ctx context.Context, t *tenant, began time.Time) {
	if len(o.wants) == 0 {
		return
	}
	if err := stage.Until(ctx, stepTimeout, o.key, o.reported(t)); err != nil {
		o.failed(err)
	}
	o.reportedAfter = time.Since(began)
}

func (o *outcome) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = errors.Join(o.err, err)
}

// remove removes all attacks in one commit and waits until they are gone.
func (t *tenant) remove(ctx context.Context) (time.Duration, error) {
	back := files{
		"projects/shop/project.yaml": fmt.Appendf(nil, declared, "Project", "shop"), "projects/evil/project.yaml": fmt.Appendf(nil, declared, "Project", "evil"),
		"projects/shop/apps/steady/app.yaml": t.steady(),
	}
	if err := errors.Join(t.commit(ctx, "Remove the attack", back, "projects"), t.push(ctx)); err != nil {
		return 0, err
	}
	began := time.Now()
	err := stage.Until(ctx, 4*mostGone, "the attack is gone", t.clean)
	return time.Since(began), err
}

func (w *window) begin(t *testing.T) {
	t.Helper()
	var err error
	if w.restarts, err = restarts(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.from = time.Now()
}

func (w *window) end(t *testing.T) {
	t.Helper()
	w.to = time.Now()
	beta.settled(w.to)
	w.spent = operator.between(w.from, w.to)
	now, err := restarts(t.Context())
	w.spent.restarts = now - w.restarts
	if err == nil {
		w.spent.kills, err = operator.kills()
	}
	if err != nil {
		w.broken = append(w.broken, err.Error())
	}
	w.latency = beta.between(w.from, w.to)
	if w.latency.err != nil {
		w.broken = append(w.broken, w.latency.err.Error())
	}
}

// judge adds every violated limit to w.broken.
func (w *window) judge(control *window) {
	say := func(bad bool, format string, args ...any) {
		if bad {
			w.broken = append(w.broken, fmt.Sprintf(format, args...))
		}
	}
	say(w.latency.n == 0, "no push of another tenant arrived")
	say(w.latency.p99 > max(mostLatency, mostSlower*control.latency.p99), "pushes of another tenant took %.2f s at p99 (%.1f times the undisturbed %.2f s)",
		w.latency.p99, w.latency.p99/control.latency.p99, control.latency.p99)
	say(w.spent.restarts > 0, "the operator restarted %d times", w.spent.restarts)
	grown := func(what string, is, was int64, most float64) {
		by := float64(is) / float64(was)
		say(by > most, "the operator itself took %d MiB %s, %.2f times the undisturbed", is>>20, what, by)
	}
	grown("at the median", w.spent.usual, control.spent.usual, mostGrowth)
	grown("in the end", w.spent.end, control.spent.usual, mostGrowth)
	grown("at the most", w.spent.own, control.spent.own, mostPeak)
	say(w.spent.all > memoryLimit, "the operator and its processes took %d MiB", w.spent.all>>20)
	say(w.moved > mostMove, "the attacker's own other app took %.0f s to move", w.moved.Seconds())
	say(w.calm > mostCalm, "boxes kept working for %.0f s", w.calm.Seconds())
	say(w.gone > mostGone, "the attacks were gone after %.0f s", w.gone.Seconds())
}

func (w *window) log(t *testing.T, all []*outcome, control *window) {
	t.Helper()
	t.Logf("%s\n    %.0f s: %s; operator %d/%d/%d MiB (%d), boxes %d MiB %.1f s CPU, all %d MiB, %d kills, moved %.1f s, calm %.1f s, gone %.1f s",
		w.name, w.to.Sub(w.from).Seconds(), w.latency,
		w.spent.own>>20, w.spent.usual>>20, w.spent.end>>20, control.spent.own>>20, w.spent.boxes>>20, w.spent.cpu, w.spent.all>>20, w.spent.kills,
		w.moved.Seconds(), w.calm.Seconds(), w.gone.Seconds())
	for _, o := range all {
		t.Logf("    %-14s %-6s reported after %5.1f s %s", o.key, o.tenant, o.reportedAfter.Seconds(), o.trouble())
		if o.err != nil {
			t.Errorf("%s by %s: %v", o.key, o.tenant, o.err)
		}
	}
	for _, what := range w.broken {
		t.Errorf("%s: %s", w.name, what)
	}
}

func (o *outcome) trouble() string {
	if o.err == nil {
		return ""
	}
	return strings.ReplaceAll(o.err.Error(), "\n", "\n        ")
}
