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
	mostLatency = 2.0 // Seconds from push to Deployment, of another tenant, at p99, or
	mostSlower  = 10  // times what it takes undisturbed, where the machine is so slow that this is more.
	mostGrowth  = 1.2 // Of the memory of the operator itself, at its median and in the end, to the undisturbed one.
	mostPeak    = 1.8 // Of the same, at any moment.
	mostGone    = 30 * time.Second
	mostMove    = 30 * time.Second // For the attackers' own other app.
	mostBurning = 0.3              // Processors that boxes use once all is told.
	mostCalm    = 60 * time.Second // Until they use no more, after all is told.
)

// atLeast is how long a window is, so that several pushes fall into it.
const atLeast = 6 * time.Second

// batch are attacks that one tenant pushes with one commit.
type batch struct {
	box     string
	attacks []attack
}

// outcome is what became of an attack of one tenant.
type outcome struct {
	attack
	box    string
	tenant string
	by     int
	// told is how long it took until people were told.
	told time.Duration
	mu   sync.Mutex
	err  error
	w    *window
}

// window is a while in which one or more tenants attack.
type window struct {
	name     string
	from, to time.Time
	latency  latency
	spent    spent
	// moved, calm and gone are the longest of the attackers.
	moved, calm, gone time.Duration
	broken            []string
	// restarts is how often the operator had begun anew before.
	restarts int
}

// TestAvailability measures an undisturbed while, has one tenant attack and then three at once, and measures again.
func TestAvailability(t *testing.T) {
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
	t.Run("one", func(t *testing.T) {
		for _, b := range batches {
			_, all := run(t, r.before, attackers[:1], b)
			r.add(all)
		}
	})
	t.Run("three", func(t *testing.T) {
		for len(batches) > 0 {
			n := len(attackers)
			if full {
				n = 1 // The same by all of them.
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

// undisturbed measures while nobody attacks.
func undisturbed(t *testing.T, name string) *window {
	t.Helper()
	w := &window{name: name}
	w.begin(t)
	time.Sleep(15 * time.Second)
	w.end(t)
	return w
}

// gather is what is run together: each attack by itself where all is run, else some of a box at a time.
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

// run has each tenant push a batch, all at the same time, waits until all is told, has it removed and waits until it is gone.
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
	w.tell(t, all, control)
	return w, all
}

func (b batch) name() string {
	var names []string
	for _, a := range b.attacks {
		names = append(names, a.key)
	}
	return b.box + ": " + strings.Join(names, ", ")
}

// prepare commits what is pushed when all are ready.
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

// took is what an attack of one tenant took until it was over.
type took struct{ moved, calm, gone time.Duration }

// attack pushes what is prepared, waits until all of it is told, moves the app steady, and removes the attack again.
func (t *tenant) attack(ctx context.Context, all []*outcome) (x took, err error) {
	began := time.Now()
	if err := t.push(ctx); err != nil {
		return x, err
	}
	doing, stop := context.WithCancel(ctx)
	defer stop()
	var acts, told sync.WaitGroup
	for _, o := range all {
		if o.tenant != t.name {
			continue
		}
		if o.does != nil {
			acts.Go(func() { o.act(doing, t) })
		}
		told.Go(func() { o.wait(ctx, t, began) })
	}
	moving := time.Now()
	err = t.move(ctx)
	if err == nil {
		err = stage.Until(ctx, 3*mostMove, "the attacker's own other app moves", t.moved)
	}
	x.moved = time.Since(moving)
	told.Wait()
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

// act does what is done besides the push, until the context ends.
func (o *outcome) act(ctx context.Context, t *tenant) {
	if err := o.does(ctx, &site{t, o.key}); err != nil && ctx.Err() == nil {
		o.failed(err)
	}
}

// wait waits until people are told.
func (o *outcome) wait(ctx context.Context, t *tenant, began time.Time) {
	if len(o.wants) == 0 {
		return
	}
	if err := stage.Until(ctx, patience, o.key, o.happened(t)); err != nil {
		o.failed(err)
	}
	o.told = time.Since(began)
}

func (o *outcome) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = errors.Join(o.err, err)
}

// remove removes all that attacks by one commit, and waits until it is gone.
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

// judge says what of what must hold did not.
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
	say(w.calm > mostCalm, "boxes went on for %.0f s", w.calm.Seconds())
	say(w.gone > mostGone, "what attacked was gone after %.0f s", w.gone.Seconds())
}

func (w *window) tell(t *testing.T, all []*outcome, control *window) {
	t.Helper()
	t.Logf("%s\n    %.0f s: %s; operator %d/%d/%d MiB (%d), boxes %d MiB %.1f s CPU, all %d MiB, %d kills, moved %.1f s, calm %.1f s, gone %.1f s",
		w.name, w.to.Sub(w.from).Seconds(), w.latency,
		w.spent.own>>20, w.spent.usual>>20, w.spent.end>>20, control.spent.own>>20, w.spent.boxes>>20, w.spent.cpu, w.spent.all>>20, w.spent.kills,
		w.moved.Seconds(), w.calm.Seconds(), w.gone.Seconds())
	for _, o := range all {
		t.Logf("    %-14s %-6s told %5.1f s %s", o.key, o.tenant, o.told.Seconds(), o.trouble())
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
