package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/measure"
	"github.com/kubeop/kubeop/e2e/stage"
)

// observation is all counters at one time.
type observation struct {
	audit measure.Counts
	usage measure.Usage
}

// observe reads all counters. With fresh it resets the memory peak.
func (b *bench) observe(fresh bool) (observation, error) {
	log, err := b.audit.Read()
	if err != nil {
		return observation{}, err
	}
	used, err := measure.UsageOf(b.operator.PID())
	if fresh {
		measure.ResetPeak(b.operator.PID())
	}
	return observation{audit: log, usage: used}, err
}

// record adds the cost of a phase until now to its other results.
func (b *bench) record(before observation, p phase) error {
	after, err := b.observe(false)
	if err != nil {
		return err
	}
	p.count(after.audit.Since(before.audit))
	p.CPUSeconds, p.PeakRSS = after.usage.CPU-before.usage.CPU, after.usage.PeakRSS
	b.r.Phases = append(b.r.Phases, p)
	b.say.Say("%.1f s; %d reads, %d writes, %.1f s of CPU, %s of memory at most", p.Seconds, p.Reads, p.Writes, p.CPUSeconds, measure.MiB(p.PeakRSS))
	return nil
}

// errBusy means that the operator did not finish its work.
var errBusy = errors.New("the operator is never at rest")

// quietSince waits until the operator has used almost no CPU for a while, and returns when that began. It does not use the operator's metrics,
// because with thousands of apps reading them costs more than the measured work.
func (b *bench) quietSince(ctx context.Context) (time.Time, error) {
	const (
		step    = 100 * time.Millisecond
		little  = 0.02 // seconds of CPU in a step
		long    = 1500 * time.Millisecond
		timeout = 3 * time.Minute
	)
	began := time.Now()
	quiet := began
	last, err := measure.UsageOf(b.operator.PID())
	for err == nil && time.Since(quiet) < long {
		select {
		case <-ctx.Done():
			return quiet, context.Cause(ctx)
		case <-time.After(step):
		}
		var now measure.Usage
		now, err = measure.UsageOf(b.operator.PID())
		if now.CPU-last.CPU > little {
			quiet = time.Now()
		}
		last = now
		if time.Since(began) > timeout {
			return quiet, fmt.Errorf("%w: in %s", errBusy, timeout)
		}
	}
	return quiet, err
}

// object is an object and its size as JSON.
type object struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
}

// largest returns the largest object of the operator's own kinds and in its own namespace.
func (b *bench) largest(ctx context.Context) (object, error) {
	client, err := kubernetes.NewForConfig(b.config)
	if err != nil {
		return object{}, fmt.Errorf("connecting to read objects: %w", err)
	}
	var most object
	for kind, path := range map[string]string{
		"Repository": "/apis/paas.kubeop.io/v1alpha1/repositories", "Tenant": "/apis/paas.kubeop.io/v1alpha1/tenants",
		"Project": "/apis/paas.kubeop.io/v1alpha1/projects", "App": "/apis/paas.kubeop.io/v1alpha1/apps",
		"ConfigMap": "/api/v1/namespaces/kubeop-system/configmaps", "Secret": "/api/v1/namespaces/kubeop-system/secrets",
	} {
		next := ""
		for {
			raw, err := client.CoreV1().RESTClient().Get().AbsPath(path).Param("limit", "500").Param("continue", next).DoRaw(ctx)
			if err != nil {
				return most, fmt.Errorf("reading every %s: %w", kind, err)
			}
			one, more, err := largestOf(kind, raw)
			if err != nil {
				return most, err
			}
			if one.Bytes > most.Bytes {
				most = one
			}
			if next = more; next == "" {
				break
			}
		}
	}
	return most, nil
}

// largestOf returns the largest object of a page of a list, and the continue token of the next page.
func largestOf(kind string, list []byte) (most object, next string, err error) {
	var page struct {
		Metadata struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(list, &page); err != nil {
		return most, "", fmt.Errorf("reading every %s: %w", kind, err)
	}
	for _, item := range page.Items {
		if len(item) <= most.Bytes {
			continue
		}
		var named struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(item, &named); err != nil {
			return most, "", fmt.Errorf("reading a %s: %w", kind, err)
		}
		most = object{Kind: kind, Name: named.Metadata.Name, Bytes: len(item)}
	}
	return most, page.Metadata.Continue, nil
}

// recorded waits until all apps that Git declares are in the cluster and the platform repository reports that.
func (b *bench) recorded(ctx context.Context, pushed time.Time) error {
	if b.r.Suspended == 0 {
		return nil
	}
	client, err := dynamic.NewForConfig(b.config)
	if err != nil {
		return fmt.Errorf("connecting to count apps: %w", err)
	}
	const timeout, step = 2 * time.Hour, 10 * time.Second
	err = stage.Until(ctx, timeout, "every suspended app is recorded", func(ctx context.Context) error {
		if _, err := b.audit.Read(); err != nil { // so that it is not rotated before it is read
			return stage.Final(err)
		}
		time.Sleep(step)
		return b.lookRecorded(ctx, client)
	})
	if err == nil {
		b.say.Say("%d apps more are recorded after %.0f s", b.r.Suspended, time.Since(pushed).Seconds())
	}
	return err
}

func (b *bench) lookRecorded(ctx context.Context, client dynamic.Interface) error {
	some, err := client.Resource(v1alpha1.GroupVersion.WithResource("apps")).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("counting apps: %w", err)
	}
	there := len(some.Items)
	if rest := some.GetRemainingItemCount(); rest != nil {
		there += int(*rest)
	}
	b.say.Say("%d of %d apps are in the cluster", there, b.r.Apps+b.r.Suspended)
	if there < b.r.Apps+b.r.Suspended {
		return fmt.Errorf("%d apps of %d are in the cluster", there, b.r.Apps+b.r.Suspended)
	}
	return b.stage.Ready(ctx, &v1alpha1.Repository{}, stage.Namespace, v1alpha1.PlatformRepository)
}
