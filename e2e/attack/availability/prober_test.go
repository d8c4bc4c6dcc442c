//go:build e2e

package availability

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/measure"
	"github.com/kubeop/kubeop/e2e/stage"
)

// prober is a tenant that works normally. It pushes a change of one of its apps, waits until the Deployment has it, and continues
// with the next app.
type prober struct {
	*tenant
	turns  int
	mu     sync.Mutex
	probes []probe
	// began is the time of the current push, or zero if there is none.
	began time.Time
}

// probe is one push.
type probe struct {
	app string
	at  time.Time
	// took is from the end of git push until the Deployment has the change, in seconds.
	took float64
	// why is what the status reports of a slow push.
	why string
	err error
}

const deploymentYAML = `apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 0
  selector: {matchLabels: {name: %[1]s}}
  template:
    metadata: {labels: {name: %[1]s}}
    spec:
      containers:
      - name: main
        image: registry.example.com/hello:v1
        env: [{name: TURN, value: "%[2]s"}]
`

// probed are the apps by name, one of each type. of is what a push changes.
var probed = []struct {
	name string
	spec string
	of   func(turn string) files
}{
	{"raw", "spec: {type: Raw, raw: {path: manifests}}\n", func(turn string) files {
		return files{"manifests/a.yaml": fmt.Appendf(nil, deploymentYAML, "raw", turn)}
	}},
	{"chart", "spec: {type: Helm, helm: {path: chart}}\n", func(turn string) files {
		return files{
			"chart/Chart.yaml":       []byte("apiVersion: v2\nname: chart\nversion: 0.1.0\n"),
			"chart/values.yaml":      fmt.Appendf(nil, "turn: %q\n", turn),
			"chart/templates/a.yaml": fmt.Appendf(nil, deploymentYAML, "chart", "{{ .Values.turn }}"),
		}
	}},
	{"folder", "spec: {type: Git, git: {url: $url, secretRef: {name: git}, path: projects/shop/apps/folder/build}}\n", func(turn string) files {
		return files{
			"build/kustomization.yaml": []byte("resources: [a.yaml]\ncommonAnnotations: {by: kustomize}\n"),
			"build/a.yaml":             fmt.Appendf(nil, deploymentYAML, "folder", turn),
		}
	}},
	{"image", "", func(turn string) files {
		const spec = "spec: {type: Image, image: {reference: registry.example.com/hello:v1, replicas: 0, env: [{name: TURN, value: %q}], probes: {}}}\n"
		return files{"app.yaml": []byte(fmt.Sprintf(declared, "App", "image") + fmt.Sprintf(spec, turn))}
	}},
}

func newProber(ctx context.Context, name string) (*prober, error) {
	t, err := newTenant(ctx, name)
	if err != nil {
		return nil, err
	}
	p := &prober{tenant: t}
	begin := files{}
	for n, app := range probed {
		if app.spec != "" {
			spec := strings.ReplaceAll(app.spec, "$url", t.repo.OperatorURL)
			begin["projects/shop/apps/"+app.name+"/app.yaml"] = []byte(fmt.Sprintf(declared, "App", app.name) + spec)
		}
		p.change(n, "0", begin)
	}
	if err := t.commit(ctx, "Begin to work", begin); err != nil {
		return nil, err
	}
	if err := t.push(ctx); err != nil {
		return nil, err
	}
	for _, app := range probed {
		if err := stage.Until(ctx, stepTimeout, "the Deployment "+app.name, p.arrived(app.name, "0")); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// change adds the files of the next turn of an app.
func (p *prober) change(n int, turn string, to files) {
	for name, content := range probed[n].of(turn) {
		to["projects/shop/apps/"+probed[n].name+"/"+name] = content
	}
}

// arrived checks that an app's Deployment has a turn.
func (p *prober) arrived(app, turn string) func(context.Context) error {
	return func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: p.namespace("shop"), Name: app}, d); err != nil {
			return err
		}
		for _, v := range d.Spec.Template.Spec.Containers[0].Env {
			if v.Name == "TURN" && v.Value == turn {
				return nil
			}
		}
		return fmt.Errorf("Deployment %s is not at turn %s", app, turn)
	}
}

// work pushes until the context ends.
func (p *prober) work(ctx context.Context) {
	for ctx.Err() == nil {
		p.turns++ // Do not repeat the turns of an earlier test: they would have arrived before the push.
		p.begin(time.Now())
		one := p.push(ctx, p.turns)
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		p.probes, p.began = append(p.probes, one), time.Time{}
		p.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (p *prober) begin(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = at
}

// settled waits until every push before a given time has arrived or has failed.
func (p *prober) settled(to time.Time) {
	for {
		p.mu.Lock()
		began := p.began
		p.mu.Unlock()
		if began.IsZero() || began.After(to) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (p *prober) push(ctx context.Context, n int) probe {
	app, turn, change := n%len(probed), fmt.Sprint(n), files{}
	p.change(app, turn, change)
	one := probe{app: probed[app].name, at: time.Now()}
	if one.err = errors.Join(p.commit(ctx, "Turn "+turn, change), p.tenant.push(ctx)); one.err != nil {
		return one
	}
	one.at = time.Now()
	if err := stage.Until(ctx, 5*time.Second, one.app, p.arrived(one.app, turn)); err != nil && ctx.Err() == nil {
		one.why = p.why(ctx, one.app)
		one.err = stage.Until(ctx, stepTimeout, one.app, p.arrived(one.app, turn))
	}
	one.took = time.Since(one.at).Seconds()
	return one
}

// why returns the conditions of the Repository and of an app.
func (p *prober) why(ctx context.Context, app string) string {
	r, a := &v1alpha1.Repository{}, &v1alpha1.App{}
	err := errors.Join(platform.Client.Get(ctx, client.ObjectKey{Name: p.name}, r),
		platform.Client.Get(ctx, client.ObjectKey{Namespace: p.namespace("shop"), Name: app}, a))
	text := fmt.Sprintf("%v; pushed %s, the Repository has seen %s, the app's generation is %d and was observed %d, of %s",
		err, p.pushed, r.Status.LastAttemptedRevision, a.Generation,
		a.Status.ObservedGeneration, a.Status.LastAttemptedRevision)
	for _, c := range append(r.Status.Conditions, a.Status.Conditions...) {
		text += fmt.Sprintf("\n        %s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	return text
}

// latency is the latency of the pushes of a period.
type latency struct {
	n             int
	p50, p99, max float64
	// slowest is the app of the slowest push, and how many seconds after the beginning it was pushed.
	slowest, why string
	into         float64
	err          error
}

// between returns the latency of the pushes between two times, and of those not finished.
func (p *prober) between(from, to time.Time) latency {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []float64
	l := latency{}
	for _, one := range p.probes {
		if end := one.at.Add(time.Duration(one.took * float64(time.Second))); end.Before(from) || one.at.After(to) {
			continue
		}
		all = append(all, one.took)
		l.err = errors.Join(l.err, one.err)
		if one.took > l.max {
			l.max, l.slowest, l.why, l.into = one.took, one.app, one.why, one.at.Sub(from).Seconds()
		}
	}
	l.n, l.p50, l.p99 = len(all), measure.Percentile(all, 0.5), measure.Percentile(all, 0.99)
	return l
}

func (l latency) String() string {
	return fmt.Sprintf("%d pushes p50 %.2f p99 %.2f max %.2f s (%s, after %.0f s)%s", l.n, l.p50, l.p99, l.max, l.slowest, l.into, l.why)
}
