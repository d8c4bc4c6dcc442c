package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroups is where a container sees its own group of processes.
const cgroups = "/sys/fs/cgroup"

// container is what the kernel holds this container to.
type container struct {
	// version of the cgroups; 0 where none are seen.
	version int
	// memory is the limit in bytes, 0 where there is none to be found.
	memory int64
	// together: out of memory, the kernel ends all processes of the container at once, whichever it would choose by itself.
	// Kubernetes sets it with cgroups of version 2 unless the kubelet has singleProcessOOMKill.
	together bool
}

// containerAt reads the cgroup that is mounted at a folder.
func containerAt(folder string) container {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return "" // What cannot be read is not known.
		}
		return strings.TrimSpace(string(text))
	}
	c := container{}
	limit := read("memory.max")
	switch {
	case limit != "" || read("cgroup.controllers") != "":
		c.version, c.together = 2, read("memory.oom.group") == "1"
	default:
		if limit = read("memory/memory.limit_in_bytes"); limit != "" {
			c.version = 1
		}
	}
	// "max", and the largest number, are none.
	if bytes, err := strconv.ParseInt(limit, 10, 64); err == nil && bytes < 1<<60 {
		c.memory = bytes
	}
	return c
}

// missing says what of the container does not protect the operator from what is evaluated.
func (c container) missing() (missing []string) {
	switch c.version {
	case 0:
		missing = append(missing, "cgroup v2 (what limits this container's memory is not known, and is not compared with what the processes take)")
	case 1:
		missing = append(missing, "cgroup v2 (version 1 is there: the kernel's own memory for the processes may not count to the container's limit)")
	}
	if c.version > 0 && c.memory == 0 {
		missing = append(missing, "a limit of the container's memory (the processes and the operator may take the node's)")
	}
	if c.together {
		missing = append(missing, "an end of single processes when memory is short (the container has memory.oom.group: "+
			"the kernel ends the operator with them; the kubelet's singleProcessOOMKill changes that)")
	}
	return missing
}
