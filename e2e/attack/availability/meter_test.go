//go:build e2e

package availability

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/e2e/measure"
	"github.com/kubeop/kubeop/e2e/stage"
)

// meter measures the resources of the operator and of its evaluation processes (boxes), and counts its restarts.
type meter struct {
	pid int
	// group is the memory control group of its container, or "" if there is none.
	group string

	mu      sync.Mutex
	samples []sample
}

// sample is one measurement, in bytes. CPU is the boxes' CPU time since the operator started, in seconds.
type sample struct {
	at time.Time
	// own is the operator's RSS. Its PSS and that of the boxes add up to what they use together.
	own, part, boxes int64
	cpu              float64
}

// spent is the resource usage of a period.
type spent struct {
	// own is the operator's maximum memory and usual its median. end is the minimum of the last two seconds, which excludes temporary
	// memory. boxes is the maximum of its processes together, and all the maximum of everything.
	own, usual, end, boxes, all int64
	// cpu is the CPU time of the boxes, in seconds.
	cpu float64
	// restarts counts the operator's restarts. kills counts the processes of its container that the kernel killed for memory.
	restarts, kills int
}

func newMeter(ctx context.Context) (*meter, error) {
	m := &meter{}
	return m, m.find(ctx)
}

// find finds the operator's process, at first and after a restart.
func (m *meter) find(ctx context.Context) (err error) {
	if m.pid, err = platform.OperatorPID(ctx); err != nil {
		return err
	}
	m.group, err = memoryGroup(m.pid)
	return err
}

// restarts returns how often the operator was restarted.
func restarts(ctx context.Context) (int, error) {
	pod, err := operatorPod(ctx)
	if err != nil || len(pod.Status.ContainerStatuses) == 0 {
		return 0, errors.Join(err, errors.New("the operator's pod has no status"))
	}
	return int(pod.Status.ContainerStatuses[0].RestartCount), nil
}

func operatorPod(ctx context.Context) (*corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := platform.Client.List(ctx, pods, client.InNamespace(stage.Namespace), client.MatchingLabels{"app.kubernetes.io/name": "kubeop"})
	if err == nil && len(pods.Items) != 1 {
		err = fmt.Errorf("there are %d pods of the operator", len(pods.Items))
	}
	if err != nil {
		return nil, err
	}
	return &pods.Items[0], nil
}

// memoryGroup finds the memory control group of the process, of version 1 or 2.
func memoryGroup(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		dir := map[string]string{"memory": "/sys/fs/cgroup/memory", "": "/sys/fs/cgroup"}[parts[1]]
		if dir == "" {
			continue
		}
		for _, file := range []string{"memory.limit_in_bytes", "memory.max"} {
			if _, err := os.Stat(filepath.Join(dir, parts[2], file)); err == nil {
				return filepath.Join(dir, parts[2]), nil
			} else if !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
		}
	}
	return "", nil
}

// limit describes the operator's memory limit.
func (m *meter) limit() (string, error) {
	if m.group == "" {
		return fmt.Sprintf("no control group of memory: the run fails past %d MiB of PSS of the operator and its processes", memoryLimit>>20), nil
	}
	for _, file := range []string{"memory.limit_in_bytes", "memory.max"} {
		text, err := os.ReadFile(filepath.Join(m.group, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if is := strings.TrimSpace(string(text)); err == nil && is != strconv.Itoa(memoryLimit) {
			err = fmt.Errorf("%s of the operator is %s, not %d", file, is, memoryLimit)
		}
		return fmt.Sprintf("the kernel holds the operator's container to %d MiB (%s)", memoryLimit>>20, file), err
	}
	return "", errors.New("the control group of memory has no limit")
}

// watch samples until the context ends.
func (m *meter) watch(ctx context.Context) {
	for ctx.Err() == nil {
		s, err := m.look()
		if err != nil {
			_ = m.find(ctx) // The process has ended, which the restart count shows.
		} else {
			m.mu.Lock()
			m.samples = append(m.samples, s)
			m.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (m *meter) look() (sample, error) {
	s := sample{at: time.Now()}
	used, err := measure.UsageOf(m.pid)
	if err != nil {
		return s, fmt.Errorf("the operator's process: %w", err)
	}
	s.own = used.RSS
	if s.part, err = measure.PSS(m.pid); err != nil {
		return s, fmt.Errorf("the operator's process: %w", err)
	}
	if s.cpu, err = waitedFor(m.pid); err != nil {
		return s, err
	}
	children, err := measure.Children(m.pid)
	for _, pid := range children {
		memory, err := measure.PSS(pid)
		used, err2 := measure.UsageOf(pid)
		if errors.Join(err, err2) != nil {
			continue // The process has ended. Its time is in that of its parent, see waitedFor.
		}
		s.boxes += memory
		s.cpu += used.CPU
	}
	return s, err
}

// waitedFor returns the CPU time of the children that a process has waited for, in seconds (cutime and cstime of proc(5)).
func waitedFor(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.Atoi(fields[13])
	system, err2 := strconv.Atoi(fields[14])
	return float64(user+system) / 100, errors.Join(err, err2)
}

// between returns the usage between two times.
func (m *meter) between(from, to time.Time) spent {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, first, last := spent{}, -1.0, 0.0
	var own []float64
	for _, one := range m.samples {
		if one.at.Before(from) || one.at.After(to) {
			continue
		}
		if first < 0 {
			first = one.cpu
		}
		last = max(last, one.cpu) // A process that ends between the two reads is counted in neither.
		own = append(own, float64(one.own))
		if s.end == 0 || one.own < s.end || to.Sub(one.at) > 2*time.Second {
			s.end = one.own
		}
		s.own, s.boxes, s.all = max(s.own, one.own), max(s.boxes, one.boxes), max(s.all, one.part+one.boxes)
	}
	s.usual = int64(measure.Percentile(own, 0.5))
	s.cpu = max(0, last-max(0, first))
	return s
}

// burning returns how many processors the boxes used in the last period.
func (m *meter) burning(last time.Duration) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.samples) == 0 {
		return 0
	}
	end := m.samples[len(m.samples)-1]
	for n := len(m.samples) - 1; n >= 0; n-- {
		if one := m.samples[n]; end.at.Sub(one.at) >= last {
			return max(0, end.cpu-one.cpu) / end.at.Sub(one.at).Seconds()
		}
	}
	return 0
}

// kills returns how often the kernel killed a process of the container for memory.
func (m *meter) kills() (int, error) {
	for _, file := range []string{"memory.oom_control", "memory.events"} {
		text, err := os.ReadFile(filepath.Join(m.group, file))
		if m.group == "" || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if value, found := strings.CutPrefix(line, "oom_kill "); found {
				return strconv.Atoi(strings.TrimSpace(value))
			}
		}
		return 0, err
	}
	return 0, nil
}
