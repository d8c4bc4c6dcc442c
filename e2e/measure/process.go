package measure

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// clockTick is the unit of CPU time in /proc on Linux: a hundredth of a second.
const clockTick = 0.01

// Usage is the resource usage of a process on this machine.
type Usage struct {
	// CPU is the time in user and system mode, in seconds.
	CPU float64
	// RSS and PeakRSS are in bytes. The peak is since the start of the process or the last ResetPeak.
	RSS, PeakRSS int64
}

// UsageOf reads /proc (proc(5)).
func UsageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("reading the CPU time: %w", err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("reading the memory: %w", err)
	}
	return parseUsage(stat, status)
}

func parseUsage(stat, status []byte) (Usage, error) {
	// The second field is the program's name in parentheses, which may contain any character.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return Usage{}, fmt.Errorf("reading the CPU time: %d fields", len(fields))
	}
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return Usage{}, fmt.Errorf("reading the CPU time: %w", err)
	}
	system, err := strconv.Atoi(fields[12])
	if err != nil {
		return Usage{}, fmt.Errorf("reading the CPU time: %w", err)
	}
	u := Usage{CPU: float64(user+system) * clockTick}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			u.RSS = kib << 10
		case "VmHWM":
			u.PeakRSS = kib << 10
		}
	}
	return u, nil
}

// PSS returns the memory of a process in bytes. Pages that several processes share are divided among them.
func PSS(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "Pss:"); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("reading the memory: process %d reports no PSS", pid)
}

// Children returns the running child processes of a process.
func Children(pid int) ([]int, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var all []int
	for _, list := range lists {
		children, _ := os.ReadFile(list) // It fails if the thread has ended.
		for child := range strings.FieldsSeq(string(children)) {
			if pid, err := strconv.Atoi(child); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all, err
}

// ResetPeak resets the peak, so that every phase has its own. If the kernel does not permit that, peaks are since the start of the process.
func ResetPeak(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}
