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
	// every is how often the metrics API is asked, which is about as often as it measures.
	every = time.Minute
	// holding is how long an answer counts if no other one follows.
	holding = every * 5 / 2
	// metricsPath has the pods of all namespaces.
	metricsPath = "/apis/metrics.k8s.io/v1beta1/pods"
)

// podMetrics is what is read of the metrics API.
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

// errNoPods refuses an answer without any pod while pods have a place on a node.
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

// use says what a pod uses from now on. What is said of it first counts from when it began: the metrics API knows a pod only after its first minute or so. One that has no place on a
// node, or is of no project, is not there.
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

// forgetSamples ends samples that are too old: of all pods if the metrics API does not answer, which is a gap, or of pods that are no longer in its answers.
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

// ask returns what the metrics API answers.
type ask func(ctx context.Context) ([]byte, error)

// sample asks the metrics API again and again, once the pods are known, until the context ends. told is called when it begins to fail, and when it answers again.
func (s *Sampler) sample(ctx context.Context, ask ask, told func(error)) {
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
			told(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}
