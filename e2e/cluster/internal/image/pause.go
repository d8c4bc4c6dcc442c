package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// PauseName is the reference of the sandbox image, which is imported into the node and never pulled.
const PauseName = "cluster.local/pause:1"

// pauseCode is a program in machine code that sleeps for ever. The sandbox of a pod only keeps its namespaces open. A Go program for that would
// cost memory for each pod, and a build step for each checkout.
var pauseCode = map[string][]byte{
	"amd64": {
		0xb8, 0x22, 0x00, 0x00, 0x00, // mov eax, 34 (pause)
		0x0f, 0x05, //                   syscall
		0xeb, 0xf7, //                   jmp to the start
	},
	"arm64": {
		0x00, 0x00, 0x80, 0xd2, // mov x0, 0
		0x01, 0x00, 0x80, 0xd2, // mov x1, 0
		0x02, 0x00, 0x80, 0xd2, // mov x2, 0
		0x03, 0x00, 0x80, 0xd2, // mov x3, 0
		0x04, 0x00, 0x80, 0xd2, // mov x4, 0
		0x28, 0x09, 0x80, 0xd2, // mov x8, 73 (ppoll of nothing, without a timeout)
		0x01, 0x00, 0x00, 0xd4, // svc 0
		0xf9, 0xff, 0xff, 0x17, // b to the start
	},
}

// WritePause writes the sandbox image to path as an archive that containerd can import.
func WritePause(path string) error {
	program, err := pauseProgram(runtime.GOARCH)
	if err != nil {
		return err
	}
	image, err := build([]file{{name: "pause", mode: 0o755, content: program}},
		v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"})
	if err != nil {
		return err
	}
	tag, err := name.NewTag(PauseName)
	if err != nil {
		return fmt.Errorf("parsing %s: %w", PauseName, err)
	}
	if err := tarball.WriteToFile(path, tag, image); err != nil {
		return fmt.Errorf("writing the sandbox image: %w", err)
	}
	return nil
}

// pauseProgram returns a minimal ELF file with the code: one header, one segment.
func pauseProgram(arch string) ([]byte, error) {
	code, known := pauseCode[arch]
	if !known {
		return nil, fmt.Errorf("making the sandbox image: no code for %s", arch)
	}
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]
	const base = 0x400000
	var header elf.Header64
	var segment elf.Prog64
	start := uint64(binary.Size(header) + binary.Size(segment))
	size := start + uint64(len(code))
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS] = byte(elf.ELFCLASS64)
	header.Ident[elf.EI_DATA] = byte(elf.ELFDATA2LSB)
	header.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	header.Type, header.Machine, header.Version = uint16(elf.ET_EXEC), uint16(machine), uint32(elf.EV_CURRENT)
	header.Entry, header.Phoff = base+start, uint64(binary.Size(header))
	header.Ehsize, header.Phentsize, header.Phnum = uint16(binary.Size(header)), uint16(binary.Size(segment)), 1
	segment = elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X),
		Vaddr: base, Paddr: base, Filesz: size, Memsz: size, Align: 0x1000,
	}
	var file bytes.Buffer
	for _, part := range []any{header, segment, code} {
		if err := binary.Write(&file, binary.LittleEndian, part); err != nil {
			return nil, fmt.Errorf("making the sandbox program: %w", err)
		}
	}
	return file.Bytes(), nil
}
