package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeop/kubeop/e2e/measure"
	"github.com/kubeop/kubeop/e2e/stage"
)

// operatorUser is the chart's service account. Requests in which it impersonates the deployers of projects count as its own.
const operatorUser = "system:serviceaccount:" + stage.Namespace + ":kubeop"

// bench is one run on one cluster.
type bench struct {
	r        *run
	stage    *stage.Stage
	say      *stage.Timeline
	operator *stage.Operator
	config   *rest.Config
	audit    *measure.AuditLog
	hosts    *hosts
	git      *repositories
	// applied records the turns of ConfigMaps that were seen in the cluster.
	applied *marks
	cancel  context.CancelFunc
}

// bringUp starts the operator with default intervals and creates the repositories.
func bringUp(ctx context.Context, s *stage.Stage, say *stage.Timeline, r *run) (b *bench, err error) {
	b = &bench{r: r, stage: s, say: say}
	if b.operator, err = s.StartOperator(ctx, "PLATFORM_INTERVAL=1m"); err != nil {
		return nil, err
	}
	say.Say("the operator is ready, process %d", b.operator.PID())
	if b.hosts, err = newHosts(r.hanging, r.refusing); err != nil {
		return nil, err
	}
	r.unreachable = b.hosts.urls
	if b.config, err = clientcmd.BuildConfigFromFlags("", s.Cluster.Kubeconfig); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	b.config.QPS, b.config.Burst, b.config.DisableCompression = -1, -1, true
	if b.git, err = newRepositories(ctx, s, r); err != nil {
		return nil, err
	}
	say.Say("the repositories are there")
	if b.audit, err = measure.FollowAudit(s.Cluster.AuditLog, []string{operatorUser}); err != nil {
		return nil, err
	}
	ctx, b.cancel = context.WithCancel(ctx)
	b.applied, err = watchApplied(ctx, b.config)
	return b, err
}

func (b *bench) close() {
	if b.cancel != nil {
		b.cancel()
	}
	b.hosts.close()
	b.audit.Close()
}

// run runs the phases. If one fails, the figures of those before it stay.
func (b *bench) run(ctx context.Context) error {
	b.r.ReadBefore = machineRead()
	for _, p := range []struct {
		name string
		act  func(context.Context) error
	}{{firstSync, b.firstSync}, {pushes, b.pushes}, {idle, b.idle}, {restart, b.restart}} {
		b.say.Title("%s, %d apps", p.name, b.r.Apps)
		if err := p.act(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	b.r.ReadAfter = machineRead()
	return nil
}

// firstSync measures from the first push until every app is Ready.
func (b *bench) firstSync(ctx context.Context) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, err := watchReady(watching, b.config)
	if err != nil {
		return err
	}
	before, err := b.observe(true)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := b.git.pushAll(ctx); err != nil {
		return err
	}
	pushed := time.Now()
	b.say.Say("pushed in %.1f s", pushed.Sub(began).Seconds())
	waited := b.waitReady(ctx, ready)
	seconds := ready.all(pushed)
	b.r.setFirstSync(seconds)
	if waited != nil {
		return waited
	}
	if err := b.recorded(ctx, pushed); err != nil {
		return err
	}
	if err := b.settled(ctx); err != nil {
		return err
	}
	if err := b.record(before, phase{Name: firstSync, Units: b.r.Apps, Seconds: slices.Max(seconds)}); err != nil {
		return err
	}
	b.r.Largest, err = b.largest(ctx)
	return err
}

// waitReady waits until all apps are Ready. It gives up after a long time without progress.
func (b *bench) waitReady(ctx context.Context, ready *marks) error {
	const timeout = 5 * time.Minute
	last, progressed := 0, time.Now()
	for reported := time.Now(); ; {
		// Read the audit log meanwhile, so that it is not rotated before it is read.
		if _, err := b.audit.Read(); err != nil {
			return err
		}
		n, more := ready.count()
		if n >= b.r.Apps {
			return nil
		}
		if n > last {
			last, progressed = n, time.Now()
		}
		if time.Since(progressed) > timeout {
			return fmt.Errorf("%d of %d apps are ready, and no other became so in %s", n, b.r.Apps, timeout)
		}
		if time.Since(reported) > 10*time.Second {
			b.say.Say("%d of %d apps are ready", n, b.r.Apps)
			reported = time.Now()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-more:
		case <-time.After(time.Second):
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// pushes measures commits that change one app each, a different one every time.
func (b *bench) pushes(ctx context.Context) error {
	before, err := b.observe(true)
	if err != nil {
		return err
	}
	for n := range b.r.pushCount {
		// This spreads the pushes over all tenants, in an order that is not the repository's.
		a := appNumber((n*7919 + 13) % b.r.Apps)
		one, err := b.push(ctx, a, n+1)
		if err != nil {
			return err
		}
		b.r.Pushes = append(b.r.Pushes, one)
	}
	seconds, cpu := b.r.pushSeconds(), b.r.pushCPU()
	b.say.Say("applied after %.2f s (half), %.2f s (all); %.2f s of CPU (half)", measure.Percentile(seconds, 0.5), slices.Max(seconds), measure.Percentile(cpu, 0.5))
	return b.record(before, phase{Name: pushes, Units: b.r.pushCount, Seconds: measure.Percentile(seconds, 0.5)})
}

// push measures one commit, until the operator has finished all work for it.
func (b *bench) push(ctx context.Context, a appID, turn int) (push, error) {
	const timeout = 5 * time.Minute
	send, err := b.git.change(ctx, a, turn)
	if err != nil {
		return push{}, err
	}
	before, err := measure.UsageOf(b.operator.PID())
	if err != nil {
		return push{}, err
	}
	if err := send(); err != nil {
		return push{}, err
	}
	pushed := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	at, err := b.applied.wait(ctx, applied(a.key(), strconv.Itoa(turn)))
	if err != nil {
		return push{}, err
	}
	if err := b.settled(ctx); err != nil {
		return push{}, err
	}
	after, err := measure.UsageOf(b.operator.PID())
	if err != nil {
		return push{}, err
	}
	if _, err := b.audit.Read(); err != nil {
		return push{}, err
	}
	// The hook is called before git push has returned, so it can be done by then.
	return push{App: a.key(), Seconds: max(0, at.Sub(pushed).Seconds()), CPUSeconds: after.CPU - before.CPU}, nil
}

// idle counts the requests while nothing changes.
func (b *bench) idle(ctx context.Context) error {
	if b.r.idleFor == 0 {
		b.say.Say("left out")
		return nil
	}
	before, err := b.observe(true)
	if err != nil {
		return err
	}
	began := time.Now()
	for time.Since(began) < b.r.idleFor {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(20*time.Second, b.r.idleFor-time.Since(began))):
		}
		if _, err := b.audit.Read(); err != nil {
			return err
		}
	}
	return b.record(before, phase{Name: idle, Units: 1, Seconds: time.Since(began).Seconds()})
}

// restart measures from the start of the process until it has reconciled every app and has finished its work.
func (b *bench) restart(ctx context.Context) error {
	if err := b.operator.Stop(); err != nil {
		return err
	}
	log, err := b.audit.Read()
	if err != nil {
		return err
	}
	began, before := time.Now(), observation{audit: log}
	if err := b.operator.Start(ctx); err != nil {
		return err
	}
	seconds := 0.0
	err = stage.Until(ctx, 10*time.Minute, "every app was looked at", func(ctx context.Context) error {
		quiet, err := b.quietSince(ctx)
		if err != nil {
			return stage.Final(err)
		}
		seconds = quiet.Sub(began).Seconds()
		// Read the metrics only now, because those of thousands of apps are work for the operator.
		now, err := measure.Scrape(ctx, "http://"+b.operator.Metrics+"/metrics", "app")
		if err == nil && now.Reconciles < b.r.Apps {
			err = fmt.Errorf("%d looks at %d apps", now.Reconciles, b.r.Apps)
		}
		return err
	})
	if err != nil {
		return err
	}
	return b.record(before, phase{Name: restart, Units: 1, Seconds: seconds})
}

// settled waits until the operator has finished its work.
func (b *bench) settled(ctx context.Context) error {
	_, err := b.quietSince(ctx)
	if errors.Is(err, errBusy) {
		b.say.Say("%v; the figures hold what else it does", err)
		return nil
	}
	return err
}
