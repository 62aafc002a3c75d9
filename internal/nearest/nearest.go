// Package nearest finds the known word that a mistyped one was most likely meant to be.
package nearest

import "fmt"

// Hint is `; did you mean "…"?` with the nearest of the known words, or empty where none is near.
func Hint(word string, known []string) string {
	best, distance := "", len(word)/2+1
	for _, k := range known {
		if max(len(word), len(k))-min(len(word), len(k)) >= distance {
			continue // at least so far away, and a sender's word may be huge
		}
		if d := levenshtein(word, k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// levenshtein counts the insertions, deletions and substitutions between two words.
func levenshtein(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j]+1, row[j+1]+1, substitute)
		}
	}
	return row[len(b)]
}
