package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubeop/kubeop/e2e/measure"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubeop/kubeop/e2e/stage"
)

// restInterval is the reconcile interval outside of the phase idle, longer than a run.
const restInterval = 10 * time.Hour

// The phases, in this order.
const (
	install   = "install"
	upgrade   = "upgrade"
	idle      = "idle"
	requested = "requested"
	oneOf     = "one"
	restart   = "restart"
	removal   = "removal"
)

// phaseNames are all phases. install always runs, because all others need its apps.
var phaseNames = []string{install, upgrade, idle, requested, oneOf, restart, removal}

// bench runs the phases for one set of apps.
type bench struct {
	driver  driver
	meter   *meter
	tracker *tracker
	say     *stage.Timeline
	apps    []app
	// still is how long no requests may occur before the system counts as quiet.
	still  time.Duration
	phases []phase
}

// run runs the chosen phases and returns the cost of each, also after an error.
func (b *bench) run(ctx context.Context, chosen []string) ([]phase, error) {
	if err := b.tracker.start(ctx, b.meter.Config, b.meter.Apps); err != nil {
		return nil, err
	}
	if err := b.quiet(ctx); err != nil {
		return nil, err
	}
	acts := map[string]func(context.Context) error{
		install: b.install, upgrade: b.upgrade, idle: b.idle, requested: b.requested, oneOf: b.one, restart: b.restart, removal: b.remove,
	}
	for _, name := range phaseNames {
		if !slices.Contains(chosen, name) {
			continue
		}
		b.say.Title("%s", name)
		if err := acts[name](ctx); err != nil {
			return b.phases, fmt.Errorf("%s: %w", name, err)
		}
	}
	return b.phases, nil
}

func (b *bench) install(ctx context.Context) error { return b.delivered(ctx, install, len(b.apps)) }

func (b *bench) upgrade(ctx context.Context) error {
	for i := range b.apps {
		b.apps[i].Turn++
	}
	return b.delivered(ctx, upgrade, len(b.apps))
}

func (b *bench) one(ctx context.Context) error {
	b.apps[0].Turn++
	return b.delivered(ctx, oneOf, 1)
}

// delivered measures from the delivery of the current apps until all are ready and no more work is done.
func (b *bench) delivered(ctx context.Context, name string, changed int) error {
	before, err := b.meter.observe(ctx, true)
	if err != nil {
		return err
	}
	pushed, err := b.deliver(ctx, name, b.apps)
	if err != nil {
		return err
	}
	return b.finish(ctx, before, pushed, phase{Name: name, Apps: changed})
}

// deliver delivers the apps and waits for them. It returns when it delivered.
func (b *bench) deliver(ctx context.Context, name string, apps []app) (time.Time, error) {
	b.tracker.expect(inputs(apps))
	pushed, err := b.driver.deliver(ctx, apps)
	if err != nil {
		return pushed, err
	}
	return pushed, b.wait(ctx, name, b.tracker.missing)
}

// remove measures from the removal of all apps until they are gone.
func (b *bench) remove(ctx context.Context) error {
	before, err := b.meter.observe(ctx, true)
	if err != nil {
		return err
	}
	gone := inputs(b.apps)
	for name := range gone {
		gone[name] = ""
	}
	b.tracker.expect(gone)
	requested, err := b.driver.deliver(ctx, nil)
	if err != nil {
		return err
	}
	if err := b.wait(ctx, removal, b.tracker.missing); err != nil {
		return err
	}
	return b.finish(ctx, before, requested, phase{Name: removal, Apps: len(b.apps)})
}

// finish waits until a delivery causes no more work and records its cost.
func (b *bench) finish(ctx context.Context, before observation, pushed time.Time, p phase) error {
	if err := b.quiet(ctx); err != nil {
		return err
	}
	applied, ready := b.tracker.results(pushed)
	if p.Apps == 1 {
		applied = []float64{slices.Max(applied)} // the other apps did not change
	}
	p.Seconds, p.P50, p.P99 = ready, measure.Percentile(applied, 0.5), measure.Percentile(applied, 0.99)
	return b.record(ctx, before, p)
}

// record adds the cost of a phase until now to its other results.
func (b *bench) record(ctx context.Context, before observation, known phase) error {
	after, err := b.meter.observe(ctx, false)
	if err != nil {
		return err
	}
	p := newPhase(known.Name, known.Apps, before, after)
	p.Seconds, p.P50, p.P99 = known.Seconds, known.P50, known.P99
	if b.meter.log == nil {
		p.Audit = 0
	}
	b.phases = append(b.phases, p)
	b.say.Say("%.1f s; per app %.2f reads and %.2f writes; %d looks, %.1f s of CPU, %s at most",
		p.Seconds, perApp(p.Reads, p.Apps), perApp(p.Writes, p.Apps), p.Reconciles, p.CPUSeconds, measure.MiB(p.PeakRSS))
	return nil
}

// idle measures one reconciliation of each app by its interval. For that it shortens the interval of every app, and makes it long again
// afterwards. These changes are not measured.
func (b *bench) idle(ctx context.Context) error {
	every := 20*time.Second + time.Duration(len(b.apps))*20*time.Millisecond
	if err := b.pace(ctx, every); err != nil {
		return err
	}
	// If a reconciliation costs requests and there are many apps, there are always requests at this interval.
	if err := b.quietWithin(ctx, every/2); ctx.Err() != nil {
		return err
	}
	before, err := b.meter.observe(ctx, true)
	if err != nil {
		return err
	}
	began := time.Now()
	// The jitter of intervals is five percent, so by then every app was reconciled.
	all := every + every/10
	if err := b.looks(ctx, idle, before, all); err != nil {
		return err
	}
	if err := b.record(ctx, before, phase{Name: idle, Apps: len(b.apps), Seconds: time.Since(began).Seconds()}); err != nil {
		return err
	}
	if err := b.pace(ctx, restInterval); err != nil {
		return err
	}
	return b.quiet(ctx)
}

// pace changes the interval of all apps and waits until the controllers have noticed.
func (b *bench) pace(ctx context.Context, every time.Duration) error {
	for i := range b.apps {
		b.apps[i].Interval = every
	}
	_, err := b.deliver(ctx, fmt.Sprintf("a look every %s", every), b.apps)
	return err
}

// requested requests a reconciliation of every app by its annotation.
func (b *bench) requested(ctx context.Context) error {
	before, err := b.meter.observe(ctx, true)
	if err != nil {
		return err
	}
	began, token := time.Now(), time.Now().Format(time.RFC3339Nano)
	if err := b.annotate(ctx, token); err != nil {
		return err
	}
	if err := b.wait(ctx, requested, func() (int, string) { return b.tracker.unanswered(token) }); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	if err := b.quiet(ctx); err != nil {
		return err
	}
	return b.record(ctx, before, phase{Name: requested, Apps: len(b.apps), Seconds: took})
}

func (b *bench) annotate(ctx context.Context, token string) error {
	client, err := dynamic.NewForConfig(b.meter.Config)
	if err != nil {
		return fmt.Errorf("connecting to annotate apps: %w", err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, token)
	apps := client.Resource(b.meter.Apps.Resource).Namespace(b.meter.Apps.Namespace)
	for _, a := range b.apps {
		if _, err := apps.Patch(ctx, a.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("annotating %s: %w", a.Name, err)
		}
	}
	return nil
}

// errNoRestart means that the driver may not restart the controllers.
var errNoRestart = errors.New("these controllers are not ours to restart")

// restart measures from the start of the controllers until each app was reconciled.
func (b *bench) restart(ctx context.Context) error {
	err := b.driver.stop()
	if errors.Is(err, errNoRestart) {
		b.say.Say("left out: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	log, err := b.meter.requests()
	if err != nil {
		return err
	}
	began, before := time.Now(), observation{audit: log}
	if err := b.driver.start(ctx); err != nil {
		return err
	}
	if err := b.looks(ctx, restart, before, 0); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	if err := b.quiet(ctx); err != nil {
		return err
	}
	return b.record(ctx, before, phase{Name: restart, Apps: len(b.apps), Seconds: took})
}
