package stage

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// SetOperatorClock changes the wall clock of the operator's process, and of no other, by an offset from the machine's; 0 sets it right again. The
// monotonic clock does not change. Programs read the clock without a system call, by a function that the kernel maps into each process (vDSO).
// This overwrites that function.
func (s *Stage) SetOperatorClock(ctx context.Context, off time.Duration) error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("setting the operator's clock: it is not known how to on %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	pid, err := s.OperatorPID(ctx)
	if err != nil {
		return err
	}
	if err := setClock(pid, off); err != nil {
		return fmt.Errorf("setting the clock of process %d: %w", pid, err)
	}
	return nil
}

// clockFunction calls clock_gettime(2), and adds to CLOCK_REALTIME the seconds in the 8 bytes at offsetAt:
//
//	mov eax, 228; syscall; test edi, edi; jne end; mov rcx, seconds; add [rsi], rcx; end: ret
var clockFunction = []byte{0xb8, 228, 0, 0, 0, 0x0f, 0x05, 0x85, 0xff, 0x75, 13, 0x48, 0xb9, 0, 0, 0, 0, 0, 0, 0, 0, 0x48, 0x01, 0x0e, 0xc3}

const offsetAt = 13

func setClock(pid int, off time.Duration) error {
	process := fmt.Sprintf("/proc/%d/", pid)
	memory, err := os.OpenFile(process+"mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	start, end, err := vdso(process)
	if err != nil {
		return err
	}
	image := make([]byte, end-start)
	if _, err := memory.ReadAt(image, start); err != nil {
		return err
	}
	at, err := symbol(image, "clock_gettime")
	if err != nil {
		return err
	}
	code := bytes.Clone(clockFunction)
	binary.LittleEndian.PutUint64(code[offsetAt:], uint64(int64(off/time.Second)))
	for range 100 {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		busy, err := within(process, start, end)
		if err == nil && !busy {
			_, err = memory.WriteAt(code, start+at)
		}
		if err := errors.Join(err, syscall.Kill(pid, syscall.SIGCONT)); err != nil || !busy {
			return err
		}
	}
	return errors.New("some thread always reads the clock")
}

// vdso returns the address range of the kernel's functions in a process.
func vdso(process string) (start, end int64, err error) {
	maps, err := os.ReadFile(process + "maps")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "[vdso]") {
			_, err := fmt.Sscanf(line, "%x-%x", &start, &end)
			return start, end, err
		}
	}
	return 0, 0, errors.New("the kernel has laid no functions into it")
}

func symbol(image []byte, name string) (int64, error) {
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := file.DynamicSymbols()
	for _, s := range symbols {
		if s.Name == "__vdso_"+name {
			return int64(s.Value), nil
		}
	}
	return 0, errors.Join(err, fmt.Errorf("no function %s", name))
}

// within reports whether a thread of a stopped process may be inside a range of addresses. The process may still be stopping.
func within(process string, start, end int64) (bool, error) {
	threads, err := filepath.Glob(process + "task/*/syscall")
	for _, thread := range threads {
		state, err := os.ReadFile(thread)
		if err != nil {
			return false, err
		}
		words := strings.Fields(string(state)) // It begins with the number of the system call and ends with the address.
		var at int64
		if _, err := fmt.Sscanf(words[len(words)-1], "0x%x", &at); err != nil || at >= start && at < end {
			return true, nil
		}
	}
	return false, err
}
