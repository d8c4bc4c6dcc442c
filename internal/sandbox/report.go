package sandbox

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report logs which confinement is active and which is missing. It logs again when that changes. The pool is locked.
func (p *Pool) report(active []string) {
	confined := strings.Join(append([]string{"rlimits"}, active...), ", ")
	if p.reported != nil && *p.reported == confined {
		return
	}
	p.reported = &confined
	l := p.opts.Limits
	p.opts.Log.Info("Evaluating what tenants wrote in processes of their own", "processes", p.opts.Processes,
		"memory", bytesOf(l.Memory), "cpu", l.CPU.String(), "wall", l.Wall.String(), "output", bytesOf(int64(l.Output)),
		"confinedBy", confined, "notActive", strings.Join(p.missing(active), "; "))
}

// missing lists the protections that are not active, and the limits that contradict each other or the container's.
func (p *Pool) missing(active []string) (found []string) {
	for _, name := range []string{namespaces, withLock, withFilter} {
		if !slices.Contains(active, name) {
			found = append(found, name+" ("+without[name]+")")
		}
	}
	if !slices.Contains(active, withLock) && !slices.Contains(active, withFilter) {
		found = append(found, "neither of the two (a process can read the operator's files and connect to whatever the operator can)")
	}
	in, l, processes := containerAt(p.cgroup), p.opts.Limits, p.opts.Processes
	found = append(found, in.missing()...)
	if all := int64(processes) * l.Memory; in.memory > 0 && all+ownMemory > in.memory {
		found = append(found, fmt.Sprintf("the container's limit of memory, %s, is less than %d processes of %s and the operator take: "+
			"what is evaluated can end the operator", bytesOf(in.memory), processes, bytesOf(l.Memory)))
	}
	if processors := runtime.GOMAXPROCS(0); time.Duration(processes)*l.CPU > time.Duration(processors)*l.Wall {
		found = append(found, fmt.Sprintf("%d processes have %d processors between them: what takes less than the limit of processor time, %s, "+
			"can be over the limit of time, %s, because of what others evaluate", processes, processors, l.CPU, l.Wall))
	}
	if processes == 1 {
		found = append(found, "there is one process: while it evaluates what takes long, all tenants wait")
	}
	return found
}

// ownMemory is the memory of the operator without the processes, in bytes.
const ownMemory = 256 << 20
