package layout

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ProcessOf returns the running process with the PID.
func ProcessOf(pid int) Process {
	start, _ := startTime(pid)
	return Process{PID: pid, Start: start}
}

// Alive reports whether this process still runs. A zombie or another process with the same PID does not count.
func (p Process) Alive() bool {
	if p.PID <= 0 || syscall.Kill(p.PID, 0) == syscall.ESRCH {
		return false
	}
	start, zombie := startTime(p.PID)
	return !zombie && start == p.Start
}

// Signal sends a signal if the process is still alive.
func (p Process) Signal(signal syscall.Signal) {
	if p.Alive() {
		_ = syscall.Kill(p.PID, signal)
	}
}

// startTime reads from /proc when the process started and whether it is a zombie. Without /proc it returns zero values.
func startTime(pid int) (start uint64, zombie bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// The command name in parentheses may contain spaces. The state is field 3, and the start time is field 22.
	_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return 0, false
	}
	start, _ = strconv.ParseUint(fields[19], 10, 64)
	return start, fields[0] == "Z"
}
