package sampler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeop/kubeop/internal/manager/tally"
	"github.com/kubeop/kubeop/internal/meter"
)

const (
	// every is the interval between two requests to the metrics API, which measures about as often.
	every = time.Minute
	// holding is how long an answer is used if no other answer follows.
	holding = every * 5 / 2
	// metricsPath lists the metrics of the pods of all namespaces.
	metricsPath = "/apis/metrics.k8s.io/v1beta1/pods"
)

// podMetrics is an answer of the metrics API, without the fields that are not used.
type podMetrics struct {
	Items []podUse `json:"items"`
}

type podUse struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Containers []struct {
		Usage map[corev1.ResourceName]resource.Quantity `json:"usage"`
	} `json:"containers"`
}

// errNoPods is the error about an answer without pods while pods run on nodes.
var errNoPods = errors.New("it has the metrics of no pod at all")

// Sample records an answer of the metrics API.
func (s *Sampler) Sample(answer []byte) error {
	var read podMetrics
	if err := json.Unmarshal(answer, &read); err != nil {
		return fmt.Errorf("reading the metrics of pods: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(read.Items) == 0 && s.hasPods() {
		return errNoPods
	}
	now := s.clock.now()
	for _, pod := range read.Items {
		s.use(now, pod)
	}
	s.sampled = now
	if _, is := s.mended[metrics]; !is {
		s.mended[metrics] = now.Add(-mending) // An answer is all that there is.
	}
	return nil
}

func (s *Sampler) hasPods() bool {
	for key := range s.things.all {
		if key.Group == meter.OfPods {
			return true
		}
	}
	return false
}

// use records what a pod uses from now on. The first sample of a pod counts from its start, because the metrics API has a pod only after about a minute.
// A pod that runs on no node, or belongs to no project, is ignored.
func (s *Sampler) use(now time.Time, is podUse) {
	key := name(is.Metadata.Namespace, is.Metadata.Name)
	of := tally.Key{Group: meter.OfPods, Name: key}
	pod, has := s.things.all[of]
	if !has {
		return
	}
	began := pod.began
	if pod.sampled.IsZero() {
		pod.sampled = now
		s.things.all[of] = pod
	} else {
		began = now // The metrics API did not have it meanwhile.
	}
	var cpu, memory resource.Quantity
	for _, c := range is.Containers {
		cpu.Add(c.Usage[corev1.ResourceCPU])
		memory.Add(c.Usage[corev1.ResourceMemory])
	}
	s.set(tally.Key{Group: meter.OfMetrics, Name: key}, thing{
		namespace: pod.namespace, app: pod.app, rates: []tally.Rate{{Meter: meter.CPUUsed, Value: nanos(cpu)}, {Meter: meter.MemoryUsed, Value: units(memory)}}, began: began, sampled: now,
	})
}

// forgetSamples drops samples older than the time holding. If the metrics API does not answer, these are the samples of all pods, and a gap begins.
func (s *Sampler) forgetSamples(now time.Time) {
	if _, is := s.mended[metrics]; is && now.Sub(s.sampled) > holding {
		delete(s.mended, metrics)
		s.tally.Break(meter.OfMetrics, s.sampled.Add(holding))
	}
	for key, is := range s.things.all {
		if key.Group == meter.OfMetrics && now.Sub(is.sampled) > holding {
			s.set(key, thing{})
		}
	}
}

// ask sends a request to the metrics API, and returns the answer.
type ask func(ctx context.Context) ([]byte, error)

// sample requests metrics in the interval every until the context ends, from when the pods are known. It calls report with the first error of a failure, and
// with nil when the metrics API answers again.
func (s *Sampler) sample(ctx context.Context, ask ask, report func(error)) {
	for !s.synced() && ctx.Err() == nil {
		time.Sleep(tick / 10)
	}
	again := time.NewTicker(every)
	defer again.Stop()
	failed := false
	for {
		limited, cancel := context.WithTimeout(ctx, every/2)
		answer, err := ask(limited)
		cancel()
		if err == nil {
			err = s.Sample(answer)
		}
		if ctx.Err() == nil && failed != (err != nil) {
			failed = err != nil
			report(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}
