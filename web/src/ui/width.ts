/** The width of elements, for what depends on it. */
import { useLayoutEffect, useState } from "preact/hooks";
import type { RefObject } from "preact";

/** Returns the width of an element in pixels; 0 before it is known. */
export function useWidth(box: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, [box]);
  return width;
}
