package decrypt

import "fmt"

// combine puts a data key together from its parts, as Shamir's secret sharing over GF(256) does: each byte of the key is the
// value at 0 of the polynomial that goes through that byte of each part. Parts of another key give another key, which the MAC
// of the file shows.
func combine(parts [][]byte) ([]byte, error) {
	var seen [256]bool
	for _, part := range parts {
		x := part[keyBytes]
		if x == 0 || seen[x] {
			return nil, fmt.Errorf("its key groups do not hold different parts of one key: %w", ErrDamaged)
		}
		seen[x] = true
	}
	key := make([]byte, keyBytes)
	for i, part := range parts {
		weight := weightAtZero(parts, i)
		for at := range key {
			key[at] ^= multiply(weight, part[at])
		}
	}
	return key, nil
}

// weightAtZero is how much part i counts at 0: the product of x/(x-xi) over the points x of all other parts. In GF(256)
// subtraction is exclusive or.
func weightAtZero(parts [][]byte, i int) byte {
	weight := byte(1)
	for j, other := range parts {
		if j != i {
			x := other[keyBytes]
			weight = multiply(weight, multiply(x, inverse(x^parts[i][keyBytes])))
		}
	}
	return weight
}

// multiply multiplies in GF(256) with the polynomial of AES, without branches that depend on the numbers.
func multiply(a, b byte) byte {
	var product byte
	for range 8 {
		product ^= a & -(b & 1)
		a = a<<1 ^ 0x1b&-(a>>7)
		b >>= 1
	}
	return product
}

// inverse is 1/a: a to the power of 254, for a other than 0.
func inverse(a byte) byte {
	power := byte(1)
	for range 254 {
		power = multiply(power, a)
	}
	return power
}
